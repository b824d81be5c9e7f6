"""HTTP in: channels from runners, and the exchanges on them."""
