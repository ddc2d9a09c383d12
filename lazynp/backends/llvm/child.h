/* A process beside the program, and the connection to it.

   In: a command, a path, bytes.  Out: a descriptor, bytes.  Promise: the process is no child of the program and has a session of its own: neither `wait` nor
   signals to the program's group find it; it inherits the connection as its standard input and no other descriptor.  Nothing here waits but
   `child_await`, and a connection that the other side has closed sends no signal. */

#ifndef LAZYNP_CHILD_H
#define LAZYNP_CHILD_H

#include <errno.h>
#ifdef __linux__
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_STACK (64 << 10) /* bytes, of each of two */
#define CHILD_NICE 5
#define CHILD_DESCRIPTORS 4096 /* that are closed one by one where the system cannot close them all at once */

extern char** environ;

typedef struct {
    char **command, **environment; /* copies: the program may change its own meanwhile */
    char* stack;                   /* of both processes */
    int connection;
} Child;

static volatile int child_starting = -1; /* the other end of a connection, as long as a thread starts the process */

/* A copy of some words, in one block. */
static char** words_copied(char* const* words) {
    size_t count = 0, bytes = 0;
    char **copied, *at;
    for (; words && words[count]; count++) bytes += strlen(words[count]) + 1; /* a program may have no environment at all */
    if ((copied = malloc((count + 1) * sizeof(char*) + bytes)) == NULL) return NULL;
    at = (char*)(copied + count + 1);
    for (size_t k = 0; k < count; k++) copied[k] = at, at = stpcpy(at, words[k]) + 1;
    copied[count] = NULL;
    return copied;
}

/* The process itself, in the program's memory until it becomes another program: it changes nothing there. */
static int child_becomes(void* given) {
    const Child* self = given;
    struct sigaction action;
    sigset_t none;
    int nothing;
    setsid();
    if (dup2(self->connection, 0) < 0 || (nothing = open("/dev/null", O_RDWR)) < 0 || dup2(nothing, 1) < 0 || dup2(nothing, 2) < 0 || chdir("/")) _exit(127);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u))
#endif
        for (int k = 3; k < CHILD_DESCRIPTORS; k++) close(k);
    /* The program's handlers would run in its memory; what came while the process was still of its group, and waits, was the program's: to ignore it forgets it. */
    for (int number = 1; number < NSIG; number++)
        if (sigaction(number, NULL, &action) == 0) {
            void (*handler)(int) = action.sa_handler == SIG_IGN ? SIG_IGN : SIG_DFL;
            memset(&action, 0, sizeof(action));
            action.sa_handler = SIG_IGN;
            sigaction(number, &action, NULL);
            action.sa_handler = handler;
            sigaction(number, &action, NULL);
        }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + CHILD_NICE);
    execve(self->command[0], self->command, self->environment);
    _exit(127);
}

/* A process whose only child that is: as soon as it has begun, it is an orphan. */
static int child_detached(void* given) {
    Child* self = given;
    (void)clone(child_becomes, self->stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, self);
    return 0;
}

static void child_free(Child* self) {
    if (self == NULL) return;
    if (self->connection >= 0) close(self->connection);
    if (self->connection == child_starting) child_starting = -1;
    free(self->command), free(self->environment), free(self->stack), free(self);
}

/* In a thread: a busy machine takes milliseconds for it.  Where it does not go the connection is closed. */
static void* child_begin(void* given) {
    Child* self = given;
    int pid = clone(child_detached, self->stack + 2 * CHILD_STACK, CLONE_VM | CLONE_VFORK, self); /* its end sends no signal */
    while (pid >= 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR) continue;
    child_free(self);
    return NULL;
}

/* The same connection by a number that is no standard stream's, which a program may have closed; -errno where there is none left. */
static int child_above(int connection) {
    int above = fcntl(connection, F_DUPFD_CLOEXEC, 3), error = errno;
    close(connection);
    return above < 0 ? -error : above;
}

/* In a copy of the program, whose thread does not go on: close what it would have closed. */
static void child_forked(void) {
    if (child_starting >= 0) close(child_starting);
    child_starting = -1;
}

/* Have a command started; the descriptor of the connection, or -errno. */
static int child_start(char* const* command) {
    Child* self = calloc(1, sizeof(Child));
    int ends[2], failed;
    sigset_t all, before;
    pthread_attr_t detached;
    pthread_t thread;
    if (self == NULL) return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return failed = errno, self->connection = -1, child_free(self), -failed;
    self->connection = child_starting = ends[1];
    self->command = words_copied(command), self->environment = words_copied(environ), self->stack = malloc(2 * CHILD_STACK);
    if (self->command == NULL || self->environment == NULL || self->stack == NULL) return close(ends[0]), child_free(self), -ENOMEM;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* it is none of the program's threads */
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&thread, &detached, child_begin, self);
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) return close(ends[0]), child_free(self), -failed;
    return child_above(ends[0]);
}

/* Connect to who listens at a path; a descriptor, or -errno. */
static int child_connect(const char* path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int connection;
    if (strlen(path) >= sizeof(address.sun_path)) return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    if ((connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0) return -errno;
    if (connect(connection, (struct sockaddr*)&address, sizeof(address))) {
        int error = errno;
        close(connection);
        return -error;
    }
    return child_above(connection);
}

/* How many bytes were sent, 0 where there is no room; -1 where the other side takes no more. */
static Py_ssize_t child_send(int connection, const char* bytes, Py_ssize_t size) {
    ssize_t sent = send(connection, bytes, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

/* How many bytes came, 0 where none did yet; -1 where none will. */
static Py_ssize_t child_receive(int connection, char* bytes, Py_ssize_t size) {
    ssize_t came = recv(connection, bytes, (size_t)size, MSG_DONTWAIT);
    if (came > 0) return came;
    return came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

/* Wait until something comes, or time is over. */
static void child_await(int connection, int milliseconds) {
    struct pollfd wanted = {.fd = connection, .events = POLLIN};
    poll(&wanted, 1, milliseconds);
}

/* What tells a connection from another one with its number: a program that closes all descriptors closes it, too. */
static unsigned long long child_inode(int connection) {
    struct stat status;
    return fstat(connection, &status) || !S_ISSOCK(status.st_mode) ? 0 : (unsigned long long)status.st_ino;
}

static void child_close(int connection) { close(connection); }

#else
static int child_start(char* const* command) { (void)command; return -ENOSYS; }
static void child_forked(void) {}
static int child_connect(const char* path) { (void)path; return -ENOSYS; }
static Py_ssize_t child_send(int connection, const char* bytes, Py_ssize_t size) { (void)connection, (void)bytes, (void)size; return -1; }
static Py_ssize_t child_receive(int connection, char* bytes, Py_ssize_t size) { (void)connection, (void)bytes, (void)size; return -1; }
static void child_await(int connection, int milliseconds) { (void)connection, (void)milliseconds; }
static unsigned long long child_inode(int connection) { (void)connection; return 0; }
static void child_close(int connection) { (void)connection; }
#endif
#endif
