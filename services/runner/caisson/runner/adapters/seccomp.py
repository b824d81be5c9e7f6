"""The system call filter of every box, made once by libseccomp.

Invariant: what the filter denies stays denied to everything that a command starts; a box without it does not start.
"""

import errno
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from caisson.common.errors import Unavailable

if TYPE_CHECKING:
    from pyseccomp import SyscallFilter

FORBIDDEN: Final[dict[str, tuple[str, ...]]] = {
    "mounts": (
        *("mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "mount_setattr"),
        *("fsopen", "fsconfig", "fsmount", "fspick"),
    ),
    "namespaces": ("unshare", "setns"),
    "keyrings": ("keyctl", "add_key", "request_key"),
    "tracing": ("bpf", "perf_event_open", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"),
    "page faults": ("userfaultfd",),
    "kernel code": (
        *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module"),
        *("query_module", "get_kernel_syms"),
    ),
    "machine": (
        *("reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup", "iopl", "ioperm"),
        *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname", "setdomainname"),
    ),
    "handles": ("open_by_handle_at", "name_to_handle_at", "fanotify_init", "lookup_dcookie"),
    "memory placement": ("mbind", "migrate_pages", "move_pages", "set_mempolicy"),
    "obsolete": ("_sysctl", "nfsservctl", "sysfs", "uselib", "ustat", "vm86", "vm86old", "modify_ldt"),
}
"""Refused with EPERM, by the reason for it."""

ABSENT: Final = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
"""Refused with ENOSYS, so that programs fall back: a filter cannot look into clone3's flags."""

_NEW_NAMESPACES: Final = (
    0x0000_0080,  # CLONE_NEWTIME
    0x0002_0000,  # CLONE_NEWNS
    0x0200_0000,  # CLONE_NEWCGROUP
    0x0400_0000,  # CLONE_NEWUTS
    0x0800_0000,  # CLONE_NEWIPC
    0x1000_0000,  # CLONE_NEWUSER
    0x2000_0000,  # CLONE_NEWPID
    0x4000_0000,  # CLONE_NEWNET
)
_TIOCSTI: Final = 0x5412
_INT_MASK: Final = 0xFFFF_FFFF
_OTHER_DOMAINS: Final = (0, *range(3, 10))  # AF_UNIX is 1, AF_INET 2, AF_INET6 10
_FIRST_DOMAIN_AFTER_INET6: Final = 11
_TYPE_MASK: Final = 0xF
_OTHER_TYPES: Final = (0, 3, 4, *range(6, 16))  # SOCK_STREAM is 1, SOCK_DGRAM 2, SOCK_SEQPACKET 5


def write_filter(path: Path) -> None:
    """Write the filter as BPF to `path`.

    Raises:
        Unavailable: libseccomp is missing, or does not know one of the calls.
    """
    try:
        # Importing it runs ldconfig to find libseccomp, and fails where there is none.
        import pyseccomp  # noqa: PLC0415

        rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
        _forbid_calls(rules, pyseccomp)
        _forbid_sockets(rules, pyseccomp)
        rules.set_attr(pyseccomp.Attr.CTL_OPTIMIZE, 2)
        with path.open("wb") as file:
            rules.export_bpf(file)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        raise Unavailable(f"seccomp: the filter cannot be made: {error}") from error


def _forbid_calls(rules: "SyscallFilter", of: ModuleType) -> None:
    not_permitted = of.ERRNO(errno.EPERM)
    for names in FORBIDDEN.values():
        for name in names:
            rules.add_rule(not_permitted, name)
    for name in ABSENT:
        rules.add_rule(of.ERRNO(errno.ENOSYS), name)
    for flag in _NEW_NAMESPACES:
        rules.add_rule(not_permitted, "clone", of.Arg(0, of.MASKED_EQ, flag, flag))
    rules.add_rule(not_permitted, "ioctl", of.Arg(1, of.MASKED_EQ, _INT_MASK, _TIOCSTI))


def _forbid_sockets(rules: "SyscallFilter", of: ModuleType) -> None:
    no_such_domain = of.ERRNO(errno.EAFNOSUPPORT)
    for call in ("socket", "socketpair"):
        for domain in _OTHER_DOMAINS:
            rules.add_rule(no_such_domain, call, of.Arg(0, of.EQ, domain))
        rules.add_rule(no_such_domain, call, of.Arg(0, of.GE, _FIRST_DOMAIN_AFTER_INET6))
        for kind in _OTHER_TYPES:
            rules.add_rule(of.ERRNO(errno.EPERM), call, of.Arg(1, of.MASKED_EQ, _TYPE_MASK, kind))
