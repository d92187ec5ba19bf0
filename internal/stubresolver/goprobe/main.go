// Command goprobe asks for the addresses of one name with Go's own resolver and prints a line: OK and the addresses, or
// the kind of error.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: goprobe HOST")
		os.Exit(2)
	}
	resolver := net.Resolver{PreferGo: true}
	addresses, err := resolver.LookupHost(context.Background(), os.Args[1])
	line := strings.Join(append([]string{kind(err)}, addresses...), " ")
	if _, err := fmt.Fprintln(os.Stdout, line); err != nil {
		os.Exit(2)
	}
}

func kind(err error) string {
	var dns *net.DNSError
	switch {
	case err == nil:
		return "OK"
	case !errors.As(err, &dns):
		return err.Error()
	case dns.IsNotFound:
		return "NOTFOUND"
	case dns.IsTimeout, dns.IsTemporary:
		return "TEMPORARY"
	}
	return "FAILED"
}
