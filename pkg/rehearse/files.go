package rehearse

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
)

// files is the server's file system as far as the snapshot knows it, and the private directory in which plugins find
// what they may read of it.
type files struct {
	corefile *cluster.Corefile
	// node is resolv.conf of the node, which the server's pod has (dnsPolicy Default); empty if it is not known.
	node string
	// dir and root are the private directory; empty and nil before the first file.
	dir  string
	root *os.Root
	size int
	// sources maps what was written to the path of the server.
	sources map[string]string
}

// hostsFile is what a kubelet writes into /etc/hosts of a pod (pkg/kubelet/kubelet_pods.go, managedHostsFileContent),
// without the line of the pod itself.
const hostsFile = `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::	ip6-localnet
fe00::	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
`

// read returns a file of the server. Where there is none, unknown says why there may be one nevertheless, and is empty
// if it is certain that there is none.
func (f *files) read(name string) (data string, found bool, unknown string) {
	if m, ok := f.corefile.Mounts[name]; ok {
		return m.Data, true, ""
	}
	switch {
	case name == "/etc/hosts":
		return hostsFile, true, ""
	case name == "/etc/resolv.conf" && f.node != "":
		return f.node, true, ""
	}
	if strings.ContainsAny(name, "*?[]") {
		return "", false, "the content of " + name + " is not known"
	}
	if _, err := f.corefile.Import(name); err != nil {
		return "", false, "the content of " + name + " is not known"
	}
	return "", false, ""
}

// under returns the files below a directory of the server, and why there may be more.
func (f *files) under(dir string) (names []string, unknown string) {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for name := range f.corefile.Mounts {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for name := range f.corefile.Opaque {
		if name == dir || strings.HasPrefix(name, prefix) || strings.HasPrefix(dir, strings.TrimSuffix(name, "/")+"/") {
			return names, "the content of " + name + " is not known"
		}
	}
	if len(names) == 0 {
		if _, err := f.corefile.Import(path.Join(dir, "x")); err != nil {
			return nil, "the content of " + dir + " is not known"
		}
	}
	return names, ""
}

// write puts a file of the server into the private directory and returns its path there.
func (f *files) write(name, data string) (string, error) {
	rel := strings.TrimPrefix(path.Clean("/"+name), "/")
	if !filepath.IsLocal(rel) || strings.ContainsRune(rel, 0) {
		return "", fmt.Errorf("%q is not the path of a file", name)
	}
	if err := f.open(); err != nil {
		return "", err
	}
	full := filepath.Join(f.dir, filepath.FromSlash(rel))
	if f.sources[full] != "" {
		return full, nil
	}
	if f.size += len(data); f.size > maxFiles {
		return "", fmt.Errorf("files have more than %d bytes", maxFiles)
	}
	if err := f.root.MkdirAll(filepath.FromSlash(path.Dir(rel)), 0o700); err != nil {
		return "", err
	}
	if err := f.root.WriteFile(filepath.FromSlash(rel), []byte(data), 0o600); err != nil {
		return "", err
	}
	f.sources[full] = name
	return full, nil
}

// mkdir makes a directory of the server in the private one.
func (f *files) mkdir(name string) (string, error) {
	rel := strings.TrimPrefix(path.Clean("/"+name), "/")
	if rel == "" || !filepath.IsLocal(rel) || strings.ContainsRune(rel, 0) {
		return "", fmt.Errorf("%q is not the path of a directory", name)
	}
	if err := f.open(); err != nil {
		return "", err
	}
	if err := f.root.MkdirAll(filepath.FromSlash(rel), 0o700); err != nil {
		return "", err
	}
	full := filepath.Join(f.dir, filepath.FromSlash(rel))
	f.sources[full] = name
	return full, nil
}

func (f *files) open() error {
	if f.root != nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "dnsmesh-rehearsal-")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening %s: %w", dir, err)
	}
	f.dir, f.root, f.sources = dir, root, map[string]string{}
	return nil
}

// close removes the private directory.
func (f *files) close() error {
	if f.root == nil {
		return nil
	}
	err := f.root.Close()
	f.root = nil
	if rm := os.RemoveAll(f.dir); err == nil {
		err = rm
	}
	return err
}

// restore puts the paths of the server back into a message.
func (f *files) restore(msg string) string {
	if f.dir == "" {
		return msg
	}
	return strings.ReplaceAll(msg, f.dir, "")
}

// zoneDirective finds the directives of zone files (RFC 1035 section 5.1, BIND's $GENERATE) that read other files or
// make any number of records. They are found wherever they stand, because the parser is the only one to know for sure.
var zoneDirective = regexp.MustCompile(`(?i)\$(include|generate)`)

// checkZone says why a zone file is not read; empty if it is.
func checkZone(data string) string {
	if m := zoneDirective.FindString(data); m != "" {
		return "it uses " + strings.ToUpper(m) + ", which the judge does not follow"
	}
	return ""
}

// nameservers returns the servers that a resolv.conf names, as plugin/pkg/parse/host.go reads it.
func nameservers(data string) []string {
	config, err := dns.ClientConfigFromReader(strings.NewReader(data))
	if err != nil {
		return nil
	}
	return config.Servers
}

// missing is a path in the private directory where nothing is.
func (f *files) missing(name string) string {
	return filepath.Join(f.dir, filepath.FromSlash(path.Clean("/"+name)))
}
