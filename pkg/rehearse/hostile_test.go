package rehearse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/corefile"
)

// canary is what stands in files of the operator that no Corefile may get at.
const canary = "canary-of-the-operator"

// TestHostile loads Corefiles that reach for the operator's machine. Files that they name exist and hold the canary; a
// command that they run would make a file; addresses that they name are listened on.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	content := canary + ".test. 60 IN A 192.0.2.66\n192.0.2.66 " + canary + ".test\nnameserver 192.0.2.66\nsearch " + canary + ".test\n"
	if err := os.WriteFile(secret, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	touched := filepath.Join(dir, "touched")
	t.Setenv("DNSMESH_CANARY", canary+".test")

	// Whoever dials out reaches this listener.
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan string, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(reached)
				return
			}
			reached <- "TCP from " + conn.RemoteAddr().String()
			_ = conn.Close()
		}
	}()
	out := listener.Addr().String()

	tests := map[string]string{
		"command":                  ".:53 {\n on startup touch %[1]s\n whoami\n}\n",
		"import of a file":         "import %[2]s\n.:53 {\n whoami\n}\n",
		"import into a block":      ".:53 {\n import %[2]s\n}\n",
		"import by glob":           ".:53 {\n import %[2]s*\n whoami\n}\n",
		"import of passwd":         "import /etc/passwd\n",
		"environment in a key":     "{$DNSMESH_CANARY}:53 {\n whoami\n}\n",
		"environment in Windows":   ".:53 {\n rewrite name a.test {%%DNSMESH_CANARY%%}\n whoami\n}\n",
		"environment by pieces":    ".:53 {\n rewrite name a.test {${$HALF}DNSMESH_CANARY}\n whoami\n}\n",
		"hosts":                    ".:53 {\n hosts %[2]s\n}\n",
		"hosts by root":            ".:53 {\n root %[3]s\n hosts secret\n}\n",
		"hosts upwards":            ".:53 {\n hosts ../../../../../../../../../../%[2]s\n}\n",
		"file":                     canary + ".test:53 {\n file %[2]s\n}\n",
		"auto":                     ".:53 {\n auto . {\n  directory %[3]s (.*) " + canary + ".test\n }\n}\n",
		"list of upstreams":        ".:53 {\n forward . %[2]s\n}\n",
		"keys of upstreams":        ".:53 {\n forward . tls://%[4]s {\n  tls %[2]s %[2]s %[2]s\n }\n}\n",
		"upstream":                 ".:53 {\n forward . %[4]s\n}\n",
		"host name as upstream":    ".:53 {\n forward . " + canary + ".example.org\n}\n",
		"resolver of upstreams":    ".:53 {\n forward . " + canary + ".example.org {\n  resolver %[4]s\n }\n}\n",
		"search list":              ".:53 {\n autopath %[2]s\n whoami\n}\n",
		"weights":                  ".:53 {\n loadbalance weighted %[2]s\n whoami\n}\n",
		"secrets":                  ".:53 {\n tsig {\n  secrets %[2]s\n }\n whoami\n}\n",
		"API server":               ".:53 {\n kubernetes cluster.local {\n  endpoint http://%[4]s\n  tls %[2]s %[2]s %[2]s\n }\n}\n",
		"kubeconfig":               ".:53 {\n kubernetes cluster.local {\n  kubeconfig %[2]s\n }\n}\n",
		"tap":                      ".:53 {\n dnstap tcp://%[4]s full\n whoami\n}\n",
		"trace":                    ".:53 {\n trace zipkin %[4]s\n whoami\n}\n",
		"secondary":                canary + ".test:53 {\n secondary {\n  transfer from %[4]s\n }\n}\n",
		"transfer":                 "a.test:53 {\n transfer {\n  to %[4]s\n }\n whoami\n}\n",
		"grpc":                     ".:53 {\n grpc . %[4]s {\n  tls %[2]s %[2]s %[2]s\n }\n}\n",
		"etcd":                     ".:53 {\n etcd a.test {\n  endpoint http://%[4]s\n }\n}\n",
		"route53":                  ".:53 {\n route53 a.test.:Z1 {\n  aws_endpoint http://%[4]s\n }\n}\n",
		"nomad":                    ".:53 {\n nomad {\n  address http://%[4]s\n }\n}\n",
		"health":                   ".:53 {\n health %[4]s\n ready %[4]s\n prometheus %[4]s\n pprof %[4]s\n whoami\n}\n",
		"loop":                     ".:53 {\n loop\n forward . 127.0.0.1:53\n}\n",
		"reload":                   ".:53 {\n reload 2s\n whoami\n}\n",
		"debug":                    ".:53 {\n debug\n whoami\n}\n",
		"signing":                  ".:53 {\n sign %[2]s a.test {\n  key directory %[3]s\n  directory %[3]s\n }\n dnssec {\n  key file %[2]s\n }\n whoami\n}\n",
		"certificates":             "tls://.:853 {\n tls %[2]s %[2]s\n whoami\n}\n",
		"database":                 ".:53 {\n geoip %[2]s\n whoami\n}\n",
		"privileged ports":         "a.test:1 {\n whoami\n}\nb.test:22 {\n whoami\n}\ngrpc://c.test:443 {\n whoami\n}\nhttps3://d.test:443 {\n whoami\n}\n",
		"ports that are taken":     ".:%[5]s {\n whoami\n}\n",
		"addresses that are taken": ".:%[5]s {\n bind 127.0.0.1\n whoami\n}\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, port, err := net.SplitHostPort(out)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.TrimSuffix(fmt.Sprintf(text+"%[1]s%[2]s%[3]s%[4]s%[5]s", touched, secret, dir, out, port), touched+secret+dir+out+port)
			j, err := Start(t.Context(), configOf(t, text, "1.15.0", map[string]string{"a": "b"}))
			var said []string
			if err != nil {
				var refusal *Refusal
				var unsupported *Unsupported
				if !errors.As(err, &refusal) && !errors.As(err, &unsupported) {
					t.Errorf("%T: %v", err, err)
				}
				// The text of the user, who wrote the name of the variable, may come back.
				said = append(said, err.Error())
			} else {
				defer func() {
					if err := j.Stop(context.Background()); err != nil {
						t.Error(err)
					}
				}()
				for _, l := range j.server.listeners {
					for _, qname := range []string{canary + ".test", "66.2.0.192.in-addr.arpa", "a.test"} {
						port := uint16(0)
						if _, err := fmt.Sscan(l.port, &port); err != nil {
							t.Fatal(err)
						}
						q := Question{Name: qname, Type: dns.TypeANY, Server: netip.AddrPortFrom(l.address, port)}
						if !strings.Contains(qname, "arpa") {
							q.Type = dns.TypeA
						}
						a, err := j.Ask(t.Context(), q)
						if err != nil {
							t.Fatal(err)
						}
						for _, rr := range slices.Concat(a.Answer, a.Authority, a.Additional) {
							said = append(said, strings.TrimPrefix(rr.String(), rr.Header().String())) // the owner is the question
						}
						for _, e := range a.Upstream {
							said = append(said, "asked "+e.To)
						}
					}
				}
				said = append(said, fmt.Sprint(j.Notices()))
			}
			for _, s := range said {
				if strings.Contains(s, "192.0.2.66") || strings.Contains(s, canary) && !strings.Contains(text, canary) {
					t.Errorf("a file or the environment of the operator was read: %s", s)
				}
			}
		})
	}
	if _, err := os.Stat(touched); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command has run: %v", err)
	}
	if err := errors.Join(listener.Close(), packets.SetReadDeadline(time.Now())); err != nil {
		t.Fatal(err)
	}
	for from := range reached {
		t.Errorf("somebody was called: %s", from)
	}
	buffer := make([]byte, 512)
	if _, from, err := packets.ReadFrom(buffer); err == nil {
		t.Errorf("somebody was called: UDP from %v", from)
	}
	if err := packets.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBounds loads Corefiles that ask for more than there is. None may take long, and most are not run at all.
func TestBounds(t *testing.T) {
	doubling := "{{ $x := .Name }}" + strings.Repeat(`{{ $x = printf "%s%s" $x $x }}`, 40) + "{{ $x }}"
	tests := []struct{ name, corefile, want string }{
		{"template with a loop", ".:53 {\n template ANY ANY . {\n  answer \"{{ range 1000000000 }}{{ range 1000000000 }}x{{ end }}{{ end }}\"\n }\n}\n", "the template has a loop"},
		{"template that grows", ".:53 {\n template ANY ANY . {\n  answer `" + doubling + "`\n }\n}\n", ""},
		{"template that calls itself", ".:53 {\n template ANY ANY . {\n  answer \"{{ define \\\"a\\\" }}{{ template \\\"a\\\" }}{{ template \\\"a\\\" }}{{ end }}{{ template \\\"a\\\" }}\"\n }\n}\n", "the template "},
		{"template that pads", ".:53 {\n template ANY ANY . {\n  answer \"{{ printf \\\"%1000000d\\\" 1 }}\"\n }\n}\n", "the template pads its output"},
		{"expression with a loop", ".:53 {\n view a {\n  expr all(1..1000000, all(1..1000000, true))\n }\n whoami\n}\n", "the expression uses the function all"},
		{"expression with a range", ".:53 {\n view a {\n  expr len(1..1000000) > 1\n }\n whoami\n}\n", "the expression has a range"},
		{"expression that grows", ".:53 {\n template ANY ANY . {\n  var a name()+name()+name()+name()+name()+name()+name()+name()\n  var b a+a+a+a+a+a+a+a\n  var c b+b+b+b+b+b+b+b\n  var d c+c+c+c+c+c+c+c\n  var e d+d+d+d+d+d+d+d\n  rcode NXDOMAIN\n }\n}\n", "the expression multiplies its own value"},
		{"expression that replaces", ".:53 {\n view a {\n  expr replace(name(), '', 'aaaaaaaa') == ''\n }\n whoami\n}\n", "the expression uses the function replace"},
		{"rewrite rules that grow", ".:53 {\n" + strings.Repeat(" rewrite continue name regex (.*) {1}{1}\n", 40) + " whoami\n}\n", "the rewrite rules multiply a name"},
		{"many blocks", strings.Repeat("a.test:53 {\n whoami\n}\n", maxBlocks+1), "more than 512 server blocks"},
		{"many clusters", ".:53 {\n" + strings.Repeat(" kubernetes cluster.local\n", maxKubernetes+1) + "}\n", "more than 8 kubernetes plugins"},
		{"many upstreams", manyUpstreams(), "more than 128 upstreams"},
		{"10 MB", ".:53 {\n whoami\n" + strings.Repeat(" # ten megabytes of it\n", 10<<20/23) + "}\n", "more than"},
		{"10 MB in one word", ".:53 {\n chaos " + strings.Repeat("x", 10<<20) + "\n}\n", "more than"},
		{"deep", ".:53 {\n whoami " + strings.Repeat("{\n a ", 1000) + strings.Repeat("\n}", 1000) + "\n}\n", "nest"},
		{"imports itself", "(a) {\n import a\n}\n.:53 {\n import a\n}\n", "imports itself"},
		{"large expression", ".:53 {\n rewrite name regex ((((a{100}){100}){100}){100}) b.test\n whoami\n}\n", "invalid regex matching pattern"},
		{"broken text", ".:53 {\n chaos \xff\xfe\n whoami\n}\n", ""},
		{"word without a spelling", ".:53 {\n chaos \"a\\\\\\\" b\"\n whoami\n}\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			j, err := Start(ctx, configOf(t, tt.corefile, "1.15.0", nil))
			if err == nil {
				a, askErr := j.Ask(ctx, Question{Name: "a.test"})
				if askErr != nil {
					t.Errorf("Ask: %v", askErr)
				}
				if err := j.Stop(ctx); err != nil {
					t.Error(err)
				}
				if tt.want != "" {
					t.Errorf("the judge has started, and answers %s; want %s", show(a), tt.want)
				}
				return
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the judge took too long")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %s", err, tt.want)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
}

func manyUpstreams() string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "z%d.test:53 {\n forward .", i)
		for k := range 10 {
			fmt.Fprintf(&b, " 203.0.%d.%d", i, k)
		}
		b.WriteString("\n}\n")
	}
	return b.String()
}

// TestDeadline shows that a question ends with its context, and that the judge can be stopped afterwards.
func TestDeadline(t *testing.T) {
	config := configOf(t, ".:53 {\n forward . 203.0.113.1\n}\n", "1.15.0", nil)
	config.Upstream = func(Exchange) Reply { return Reply{Silent: true} }
	j := begin(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a, err := j.Ask(ctx, Question{Name: "a.test"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s, %v", show(a), err)
	}
	canceled, cancelNow := context.WithCancel(t.Context())
	cancelNow()
	if _, err := Start(canceled, configOf(t, kubeadm, "1.15.0", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v", err)
	}
}

func TestStopped(t *testing.T) {
	j, err := Start(t.Context(), configOf(t, kubeadm, "1.15.0", nil))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := j.Ask(t.Context(), Question{Name: "a.test"}); !errors.Is(err, ErrStopped) {
		t.Errorf("Ask: %v", err)
	}
}

func TestAskInvalid(t *testing.T) {
	j := begin(t, configOf(t, "a.test:1053 {\n whoami\n}\n", "1.15.0", nil))
	if _, err := j.Ask(t.Context(), Question{Name: "a.test"}); !errors.Is(err, ErrNoListener) {
		t.Errorf("nobody listens on port 53: %v", err)
	}
	if _, err := j.Ask(t.Context(), Question{Name: "a..test", Server: netip.AddrPortFrom(netip.Addr{}, 1053)}); err == nil {
		t.Error("an invalid name was asked")
	}
}

// TestLinked holds the list of what is linked in: nothing that runs commands, serves profiles, or is a client of a cloud.
func TestLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	const module = "github.com/coredns/coredns/plugin/"
	var plugins []string
	for path := range strings.FieldsSeq(string(out)) {
		for _, banned := range []string{
			"github.com/coredns/caddy/onevent", "net/http/pprof", "github.com/aws/", "github.com/Azure/", "cloud.google.com/",
			"google.golang.org/api", "go.etcd.io/etcd/client", "github.com/hashicorp/nomad", "github.com/DataDog/",
			"github.com/openzipkin",
		} {
			if strings.HasPrefix(path, banned) {
				t.Errorf("%s is linked in", path)
			}
		}
		if name, ok := strings.CutPrefix(path, module); ok && !strings.HasPrefix(name, "pkg/") {
			plugins = append(plugins, name)
		}
	}
	known := treatments()
	for _, name := range plugins {
		switch name {
		// The plugins that are run use these. They are registered and in no list of directives.
		case "cache/freq", "debug", "dnstap", "dnstap/msg", "transfer", "metrics", "metrics/vars", "etcd/msg", "kubernetes/object", "file/rrutil", "file/tree", "test":
			continue
		}
		if !known[name].run {
			t.Errorf("plugin %s is linked in and is not run", name)
		}
	}
}

// TestTreatments holds every directive of every release against the list.
func TestTreatments(t *testing.T) {
	known := treatments()
	for _, o := range releaseOrders() {
		for _, name := range o.names {
			if _, ok := known[name]; !ok {
				t.Errorf("%s of release %v has no treatment", name, o.from)
			}
		}
	}
	for name := range known {
		if _, _, ok := knownIn(name); !ok && name != "proxy" { // gone with 1.5.0
			t.Errorf("no release has the plugin %s", name)
		}
	}
}

// openSockets counts the sockets of the process.
func openSockets(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			count++
		}
	}
	return count
}

// rehearse starts a judge with everything that starts goroutines or opens files, asks it, and stops it.
func rehearse(t *testing.T) {
	t.Helper()
	files := map[string]string{"a.test.db": "a.test. 60 IN SOA ns.a.test. m.a.test. 1 2 3 4 5\nwww.a.test. 60 IN A 192.0.2.1\n", "hosts": "192.0.2.2 h.test\n"}
	const more = "a.test:53 {\n file /etc/extra/a.test.db\n}\nb.test:53 {\n auto {\n  directory /etc/extra\n }\n}\nh.test:53 {\n hosts /etc/extra/hosts {\n  reload 1s\n }\n errors {\n  consolidate 5m \".*\"\n }\n}\n"
	config := configOf(t, kubeadm+more, "1.15.0", files)
	config.Cache, config.Upstream = true, address
	j, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, want string }{
		{"www.example.org", "NOERROR; www.example.org. A 198.51.100.1; by forward; asked /etc/resolv.conf for www.example.org."},
		{"web.default.svc.cluster.local", "NOERROR; web.default.svc.cluster.local. A 10.96.0.7; by kubernetes"},
		{"www.a.test", "NOERROR; www.a.test. A 192.0.2.1; by block 1 file"},
		{"h.test", "NOERROR; h.test. A 192.0.2.2; by block 3 hosts"},
	} {
		for _, tcp := range []bool{false, true} {
			a, err := j.Ask(t.Context(), Question{Name: tt.name, TCP: tcp})
			if err != nil {
				t.Fatal(err)
			}
			if got := show(a); got != tt.want && a.Plugin != "cache" {
				t.Fatalf("%s, want %s", got, tt.want)
			}
		}
	}
	dir := j.plan.files.dir
	if err := j.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the private directory is still there: %v", err)
	}
}

// repeat rehearses over and over, and fails if goroutines or sockets are left.
func repeat(t *testing.T, times int) {
	rehearse(t) // what a process makes once
	goroutines, sockets := runtime.NumGoroutine(), openSockets(t)
	for range times {
		rehearse(t)
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > goroutines || openSockets(t) > sockets {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d sockets, before %d and %d\n%s", runtime.NumGoroutine(), openSockets(t), goroutines, sockets,
				stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

func TestRepeat(t *testing.T) { repeat(t, 20) }

// TestSideBySide asks several judges at once while others start and stop.
func TestSideBySide(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for range 5 {
				rehearse(t)
			}
		})
	}
}

// FuzzStart loads any text as a Corefile. It must not panic, and must come to an end.
func FuzzStart(f *testing.F) {
	for _, seed := range []string{
		kubeadm, "", "a.test {\n file a\n}\n", "import a", "{$A} {\n whoami\n}\n", ".:53 {\n forward . a b c {\n  tls\n }\n}\n",
		".:53 {\n template IN A . {\n  answer \"{{ .Name }} 60 IN A 192.0.2.1\"\n }\n}\n", "tls://a https://b {\n bind lo\n view a {\n  expr true\n }\n}\n",
		"a.test b.test:1053\nforward . 203.0.113.1\n", ".:53 {\n rewrite stop {\n  name regex (.*)\\.a {1}.b answer auto\n }\n}\n",
	} {
		f.Add(seed, "www.a.test")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if len(text) > corefile.MaxSize {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		config := configOf(t, text, "1.15.0", map[string]string{"a": "b"})
		j, err := Start(ctx, config)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			return
		}
		for _, l := range j.server.listeners {
			port := uint16(0)
			if _, err := fmt.Sscan(l.port, &port); err != nil || port == 0 {
				continue
			}
			if _, err := j.Ask(ctx, Question{Name: name, Server: netip.AddrPortFrom(l.address, port)}); errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if err := j.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}
