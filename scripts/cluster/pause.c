/* Holds the namespaces of a pod: it waits, and ends when it is told to. */
#include <signal.h>
#include <unistd.h>

static void end(int signal) {
    (void)signal;
    _exit(0);
}

int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    /* Children whose parents are gone leave nothing behind. */
    signal(SIGCHLD, SIG_IGN);
    for (;;) pause();
}
