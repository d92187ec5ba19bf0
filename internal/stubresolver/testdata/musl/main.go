// Command musl asks for the addresses of one name with the resolver of musl 1.2.5, which modernc.org/libc holds
// translated from C to Go, and prints a line as probe.c does.
package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"unsafe"

	"modernc.org/libc"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: musl HOST")
		os.Exit(2)
	}
	tls := libc.NewTLS()
	host, err := libc.CString(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var list uintptr
	hints := libc.Taddrinfo{Fai_family: libc.AF_UNSPEC, Fai_socktype: libc.SOCK_STREAM}
	status := libc.Xgetaddrinfo(tls, host, 0, uintptr(unsafe.Pointer(&hints)), uintptr(unsafe.Pointer(&list)))
	out := []string{name(status)}
	for p := list; p != 0; {
		info := (*libc.Taddrinfo)(unsafe.Pointer(p))
		out = append(out, address(info))
		p = info.Fai_next
	}
	fmt.Println(strings.Join(out, " "))
}

func address(info *libc.Taddrinfo) string {
	// The address follows family and port, and for IPv6 a flow label.
	if info.Fai_family == libc.AF_INET {
		return netip.AddrFrom4(*(*[4]byte)(unsafe.Pointer(info.Fai_addr + 4))).String()
	}
	return netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(info.Fai_addr + 8))).String()
}

// name is the name of a status of getaddrinfo in musl's netdb.h.
func name(status int32) string {
	switch status {
	case 0:
		return "OK"
	case -2:
		return "EAI_NONAME"
	case -3:
		return "EAI_AGAIN"
	case -4:
		return "EAI_FAIL"
	case -5:
		return "EAI_NODATA"
	case -11:
		return "EAI_SYSTEM"
	}
	return fmt.Sprintf("EAI(%d)", status)
}
