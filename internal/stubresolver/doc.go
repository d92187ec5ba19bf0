// Package stubresolver asks the stub resolvers of glibc, musl and Go for names, each with a resolv.conf of its own, and
// records the queries that reach the nameservers. It is what the models of pkg/resolve are held against.
//
// A Lane is a network namespace with nameservers in this process, on port 53 of loopback addresses, and a probe program
// for each resolver in a mount namespace with its own /etc. Nothing outside of the namespaces is read or changed. Lanes
// need Linux and root, a C compiler and musl-gcc.
package stubresolver
