/*
 * caisson-box: the two ends of one command's box.
 *
 *     caisson-box enter NETNS_FD CGROUP_FILE... -- PROGRAM ARGUMENT...
 *     caisson-box init STATUS_FD UID DIRECTORY NAME=VALUE... -- PROGRAM ARGUMENT...
 *
 * `enter` runs outside, as root: it moves itself into a network namespace and into cgroups, and becomes PROGRAM.
 * `init` is process 1 inside: it starts PROGRAM as UID with exactly the given environment, reaps everything, and tells
 * STATUS_FD, one word and one detail to a line:
 *
 *     failed STEP: REASON    PROGRAM was not started
 *     started                PROGRAM is about to be executed
 *     ended STATUS           PROGRAM ended with this wait status; the rest of the box is killed
 *
 * Invariant: PROGRAM runs as UID with no group, capability or descriptor (above 2) but its own, or not at all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SET_UP_FAILED = 125, FIRST_TENANT_UID = 1000, OPEN_FILES = 4096, CAPABILITY_VERSION_3 = 0x20080522 };

static int report_fd = STDERR_FILENO;

static void tell(const char *format, const char *word, const char *detail)
{
    char line[256];
    int size = snprintf(line, sizeof line, format, word, detail);
    if (size >= (int)sizeof line)
        size = sizeof line - 1;
    if (write(report_fd, line, (size_t)size) != size)
        _exit(SET_UP_FAILED);
}

static _Noreturn void fail(const char *step)
{
    tell("failed %s: %s\n", step, strerror(errno));
    _exit(SET_UP_FAILED);
}

static void need(int succeeded, const char *step)
{
    if (!succeeded)
        fail(step);
}

static long number(const char *text)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno == 0 && (*text == '\0' || *end != '\0' || value < 0))
        errno = EINVAL;
    need(errno == 0, "number");
    return value;
}

/* Cut `arguments` at "--" and return what follows it: a program and its arguments. */
static char **split_program(char **arguments)
{
    while (*arguments != NULL && strcmp(*arguments, "--") != 0)
        arguments++;
    errno = EINVAL;
    need(arguments[0] != NULL && arguments[1] != NULL, "program");
    *arguments = NULL;
    return arguments + 1;
}

/* ------------------------------------------------------------------------------------------------ enter */

static void join_cgroup(const char *file)
{
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    need(fd >= 0, "open cgroup");
    need(write(fd, "0", 1) == 1, "join cgroup");
    close(fd);
}

static void enter(char **arguments)
{
    char **program = split_program(arguments);
    need(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "die with the runner");
    for (char **file = arguments + 1; *file != NULL; file++)
        join_cgroup(*file);
    int netns = (int)number(arguments[0]);
    need(setns(netns, CLONE_NEWNET) == 0, "network namespace");
    close(netns);
    execv(program[0], program);
    fail("execute bubblewrap");
}

/* ------------------------------------------------------------------------------------------------- init */

static void drop_capabilities(void)
{
    struct { unsigned version; int pid; } header = {.version = CAPABILITY_VERSION_3};
    struct { unsigned effective, permitted, inheritable; } none[2] = {{0}};
    need(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0, "ambient capabilities");
    need(syscall(SYS_capset, &header, none) == 0, "capabilities");
}

static void drop_bounding_set(void)
{
    for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        need(prctl(PR_CAPBSET_DROP, capability) == 0, "bounding set");
}

static void limit(int resource, rlim_t value, const char *step)
{
    struct rlimit both;
    need(getrlimit(resource, &both) == 0, step);
    if (both.rlim_max > value)
        both.rlim_max = value;
    both.rlim_cur = both.rlim_max;
    need(setrlimit(resource, &both) == 0, step);
}

static void become(uid_t uid)
{
    uid_t real, effective, saved;
    need(setgroups(0, NULL) == 0, "groups");
    need(setresgid(uid, uid, uid) == 0, "gid");
    need(setresuid(uid, uid, uid) == 0, "uid");
    need(getresuid(&real, &effective, &saved) == 0 && real == uid && effective == uid && saved == uid, "uid");
}

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    need(sigprocmask(SIG_SETMASK, &none, NULL) == 0, "signals");
}

/* Descriptors 0 to 2 stay; 3 is the report, until the program is executed. */
static void keep_only_report(void)
{
    enum { REPORT = STDERR_FILENO + 1 };
    need(report_fd == REPORT || dup2(report_fd, REPORT) == REPORT, "report");
    report_fd = REPORT;
    need(fcntl(REPORT, F_SETFD, FD_CLOEXEC) == 0, "report");
    need(syscall(SYS_close_range, REPORT + 1U, ~0U, 0U) == 0, "descriptors");
}

static _Noreturn void start_program(uid_t uid, const char *directory, char **environment, char **program)
{
    reset_signals();
    umask(022);
    limit(RLIMIT_CORE, 0, "core limit");
    limit(RLIMIT_NOFILE, OPEN_FILES, "file limit");
    need(setsid() >= 0, "session");
    need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
    drop_bounding_set();
    become(uid);
    drop_capabilities();
    need(chdir(directory) == 0, "directory");
    keep_only_report();
    tell("%s%s\n", "started", "");
    execve(program[0], program, environment);
    fail("execute the shell");
}

/* The kernel kills the rest of the pid namespace when its process 1 ends. */
static _Noreturn void reap_until_ended(pid_t shell)
{
    int status = 0;
    char told[16];
    for (;;) {
        pid_t ended = wait(&status);
        if (ended == shell)
            break;
        need(ended > 0 || errno == EINTR, "wait");
    }
    snprintf(told, sizeof told, "%d", status);
    tell("%s %s\n", "ended", told);
    _exit(0);
}

static void init(char **arguments)
{
    char **program = split_program(arguments);
    report_fd = (int)number(arguments[0]);
    long uid = number(arguments[1]);
    errno = EPERM;
    need(getpid() == 1, "process 1");
    need(uid >= FIRST_TENANT_UID, "uid");
    pid_t shell = fork();
    need(shell >= 0, "fork");
    if (shell == 0)
        start_program((uid_t)uid, arguments[2], arguments + 3, program);
    drop_bounding_set();
    drop_capabilities();
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
    reap_until_ended(shell);
}

int main(int count, char **arguments)
{
    enum { LEAST = 6 };
    if (count >= LEAST && strcmp(arguments[1], "enter") == 0)
        enter(arguments + 2);
    else if (count >= LEAST && strcmp(arguments[1], "init") == 0)
        init(arguments + 2);
    fprintf(stderr, "caisson-box: part of the runner, not for use by hand\n");
    return SET_UP_FAILED;
}
