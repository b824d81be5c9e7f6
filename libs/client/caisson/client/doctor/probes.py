"""The bash scripts that look around inside a sandbox, and the facts that they print.

Invariant: a script reaches the shell encoded, so that the guards, which read commands, neither stop nor help it: what
is examined are the layers below them.
"""

import base64
from collections import defaultdict
from collections.abc import Mapping

SEARCH_LIMIT_S = 20

IDENTITY = r"""
echo "uid=$(id -u)"; echo "gid=$(id -g)"; echo "groups=$(id -G)"
while read -r name value _; do
  case $name in CapInh: | CapPrm: | CapEff: | CapBnd: | CapAmb: | NoNewPrivs: | Seccomp:)
    echo "${name%:}=$value" ;;
  esac
done < /proc/self/status
echo "workspace=$WORKSPACE"
echo "workspace_mode=$(stat -c %a "$WORKSPACE")"
echo "workspace_owner=$(stat -c %u "$WORKSPACE")"
"""

ENVIRONMENTS = r"""
for file in /proc/[0-9]*/environ; do
  if content=$( { tr '\n\0' ' \n' < "$file"; } 2> /dev/null ); then
    echo "read=$file"
    while IFS= read -r line; do [ -n "$line" ] && echo "variable=$line"; done <<< "$content"
  else
    echo "refused=$file"
  fi
done
"""

HOLD_OPEN = r"""
umask 0
echo "theirs $NONCE" > "$WORKSPACE/$NONCE"
chmod 0777 "$WORKSPACE" && echo "uid=$(id -u)"
echo "holding=$(cat "$WORKSPACE/$NONCE")"
"""

HOLD = 'exec -a "$NONCE" sleep "$HOLD_S"\n'

SEARCH = r"""
echo "mine $NONCE" > "$WORKSPACE/$NONCE"
look() { [ -e "$1" ] && { echo "found=$1"; echo "content=$(cat "$1" 2> /dev/null)"; }; }
roots="$WORKSPACE /tmp /var/tmp /dev/shm /run /srv /mnt /home /root /opt /data /var/lib /var/lib/caisson"
for root in $roots; do
  for up in "" /.. /../.. /workspaces /tenants /workspaces/tenants; do
    for down in "$THEIR_RUN" "$THEIR_UID/$THEIR_RUN" "tenants/$THEIR_UID/$THEIR_RUN"; do
      look "$root$up/$down/$NONCE"
      [ -e "$root$up/$down" ] && echo "found=$root$up/$down"
    done
  done
done
for process in /proc/[0-9]*; do
  look "$process/cwd/$NONCE"; look "$process/root$WORKSPACE/$NONCE"
  echo "process=$(stat -c %u "$process" 2> /dev/null)"
  tr '\0' ' ' 2> /dev/null < "$process/cmdline" | grep -q -- "^$NONCE" && echo "seen=$process"
done
timeout "$SEARCH_LIMIT_S" find / \( -path /proc -o -path /sys -o -path /usr \) -prune -o \
  \( -name "$NONCE" -o -name "$THEIR_RUN" \) -print 2> /dev/null | while IFS= read -r path; do look "$path"; done
echo "searched=yes"
"""

OUTBOUND = r"""
for target in $TARGETS; do
  began=${EPOCHREALTIME/./}
  timeout 5 bash -c 'exec 3<> "/dev/tcp/$0/$1"' "${target%:*}" "${target##*:}" 2> /dev/null
  code=$?
  echo "$target=$code $(( (${EPOCHREALTIME/./} - began) / 1000 ))"
done
"""

PROXY = r"""
address=${API_HOST#http://}
exec 3<> "/dev/tcp/${address%:*}/${address##*:}" || exit 1
printf 'GET /caisson-doctor HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$address" >&3
IFS= read -r -t 10 line <&3
echo "answer=${line%$'\r'}"
"""

Facts = Mapping[str, list[str]]


def command(script: str, variables: Mapping[str, str] | None = None) -> str:
    """Return the bash command that runs a script with some variables set."""
    settings = "".join(f"{name}={_quote(value)}\n" for name, value in (variables or {}).items())
    encoded = base64.b64encode((settings + script).encode()).decode()
    return f'eval "$(base64 -d <<< {encoded})"'


def _quote(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def read_facts(text: str) -> Facts:
    """Return what a script printed: the values of each `name=value`, in order."""
    facts: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator:
            facts[name].append(value)
    return facts
