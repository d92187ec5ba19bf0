/*
 * probe ETC [PROGRAM] answers look-ups with the stub resolver of the C library that it is linked with, or with PROGRAM.
 *
 * It puts the directory ETC in place of /etc in a mount namespace of its own, then reads host names from standard input,
 * one a line, and prints a line for each: the status of getaddrinfo by name, then the addresses. Every look-up has a
 * process of its own, as resolvers keep state. PROGRAM gets the host name as its argument and prints such a line.
 * With glibc, probe --version prints the version of the library.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static const char *name(int status)
{
	switch (status) {
	case 0: return "OK";
	case EAI_NONAME: return "EAI_NONAME";
	case EAI_AGAIN: return "EAI_AGAIN";
	case EAI_FAIL: return "EAI_FAIL";
	case EAI_SYSTEM: return "EAI_SYSTEM";
#ifdef EAI_NODATA
	case EAI_NODATA: return "EAI_NODATA";
#endif
	}
	return gai_strerror(status);
}

static void resolve(const char *host)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = 0, *p;
	char text[INET6_ADDRSTRLEN];

	printf("%s", name(getaddrinfo(host, 0, &hints, &list)));
	for (p = list; p; p = p->ai_next) {
		void *addr = p->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)p->ai_addr)->sin_addr
		                                     : (void *)&((struct sockaddr_in6 *)p->ai_addr)->sin6_addr;
		printf(" %s", inet_ntop(p->ai_family, addr, text, sizeof text) ? text : "?");
	}
	printf("\n");
	exit(fflush(stdout) ? 2 : 0);
}

int main(int argc, char **argv)
{
	char host[2048];

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: probe ETC [PROGRAM]\n");
		return 2;
	}
#ifdef __GLIBC__
	if (!strcmp(argv[1], "--version"))
		return puts(gnu_get_libc_version()) < 0;
#endif
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS))
		fail("unshare");
	/* Without a search list, resolvers take the domain of the host's name; this one has none. */
	if (sethostname("probe", 5))
		fail("sethostname");
	if (mount("none", "/", 0, MS_REC | MS_PRIVATE, 0))
		fail("making mounts private");
	if (mount(argv[1], "/etc", 0, MS_BIND, 0))
		fail("mounting /etc");
	while (fgets(host, sizeof host, stdin)) {
		int status;
		pid_t pid;

		host[strcspn(host, "\n")] = 0;
		if ((pid = fork()) < 0)
			fail("fork");
		if (!pid) {
			/* Some configurations make glibc abort: without a word and a core, as the status says it. */
			struct rlimit none = { 0, 0 };
			if (setrlimit(RLIMIT_CORE, &none) || !freopen("/dev/null", "w", stderr))
				_exit(2);
			if (argc == 2)
				resolve(host);
			execl(argv[2], argv[2], host, (char *)0);
			fail(argv[2]);
		}
		if (waitpid(pid, &status, 0) != pid)
			fail("waitpid");
		if (status)
			printf("died with status %d\n", status);
		if (fflush(stdout))
			return 2;
	}
	return 0;
}
