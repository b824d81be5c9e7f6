"""What a loop logs and goes on after: a server that blinks. Anything else ends the process."""

from caisson.common.errors import Unavailable
from caisson.common.postgres import DATABASE_TROUBLE

TROUBLE = (*DATABASE_TROUBLE, Unavailable)
