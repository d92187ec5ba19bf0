package realtool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool/toolcache"
)

// The ranges of addresses that Services get, IPv4 first, as kubeadm has them for IPv4.
const (
	ServiceCIDRv4 = "10.96.0.0/12"
	ServiceCIDRv6 = "2001:db8:96::/112"
)

const (
	// startTimeout bounds the start of both servers. An idle machine takes 5 to 8 seconds; this allows for a CI machine
	// that runs other tests with the race detector beside it.
	startTimeout = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
	// portAttempts is how often a server is started again because something took its port between choosing and binding.
	portAttempts = 5
)

// Options says how a control plane differs from the usual one: authorization by RBAC, no anonymous requests, Services of
// both IP families, all API groups that are on by default.
type Options struct {
	// Authorization is the API server's --authorization-mode; empty means RBAC. With AlwaysAllow the server refuses
	// anonymous requests whatever Anonymous says.
	Authorization string
	// Anonymous lets requests without credentials in, as user system:anonymous.
	Anonymous bool
	// APIServerArgs are further arguments of the API server. They come last, so that they override ours.
	APIServerArgs []string
}

// ControlPlane is a running etcd and kube-apiserver. There is no controller manager, scheduler or node: objects stay as
// they were written, so tests write EndpointSlices, Endpoints and Pod status themselves; a deleted namespace stays in
// phase Terminating with its contents; Pods bound to nodes that do not exist are not collected; and the ClusterRoles
// admin, edit and view, whose rules a controller gathers, grant nothing.
//
// The ServiceAccount admission plugin is off: it would refuse Pods whose service account no controller has made.
type ControlPlane struct {
	dir       string
	authority *authority
	url       string
	servers   []*process
}

// New starts a control plane for one test and stops it when the test ends. Where the servers have not been built it
// skips or fails the test (see Missing). If the test fails, the end of the servers' logs is printed with it.
//
// A start takes seconds: tests of one package better share one, each in namespaces of its own; see Start.
func New(t testing.TB, o Options) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), o)
	if err != nil {
		Missing(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cp.Logs())
		}
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Start starts a control plane and waits until it serves. It is for TestMain, benchmarks and programs; the caller has to
// call Stop. The error is a *toolcache.MissingError where the servers have not been built; a start that fails for another
// reason has stopped everything, and its error holds the end of the log. Cancelling ctx ends the start, not the servers.
//
// On Linux the servers also end when the calling process ends, however it ends; what they wrote then stays in the folder
// of temporary files.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	etcd, err := toolcache.Lookup("etcd")
	if err != nil {
		return nil, err
	}
	apiserver, err := toolcache.Lookup("kube-apiserver")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "dnsmesh-control-plane-")
	if err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	cp := &ControlPlane{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting a control plane: %w", err), cp.Stop())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	store, err := cp.startEtcd(ctx, etcd)
	if err != nil {
		return nil, err
	}
	if err := cp.writeKeys(time.Now()); err != nil {
		return nil, err
	}
	if err := cp.startAPIServer(ctx, apiserver, store, o); err != nil {
		return nil, err
	}
	return cp, nil
}

// Stop ends both servers and removes what they wrote. It may be called again.
func (cp *ControlPlane) Stop() error {
	var errs []error
	for i := len(cp.servers) - 1; i >= 0; i-- { // the API server before its store
		errs = append(errs, cp.servers[i].stop())
	}
	return errors.Join(append(errs, os.RemoveAll(cp.dir))...)
}

// Logs returns the end of what each server printed.
func (cp *ControlPlane) Logs() string {
	var b strings.Builder
	for _, p := range cp.servers {
		fmt.Fprintf(&b, "the end of the log of %s:\n%s\n", p.name, tail(p.log))
	}
	return b.String()
}

// URL returns the address of the API server, https://127.0.0.1:PORT.
func (cp *ControlPlane) URL() string { return cp.url }

// Config returns the configuration of a client that may do anything: group system:masters. It has no rate limit, so that
// tests write as fast as the server takes it; code under test sets the limits that it would have.
func (cp *ControlPlane) Config() (*rest.Config, error) {
	return cp.ConfigFor("admin", "system:masters")
}

// ConfigFor returns the configuration of a client that is the user, in the groups; the rights are those that RBAC objects
// in the cluster give to them.
func (cp *ControlPlane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	now := time.Now()
	return cp.configFor(now.Add(-time.Minute), now.Add(lifetime), user, groups)
}

// ExpiredConfigFor is ConfigFor with a certificate that ended an hour ago.
func (cp *ControlPlane) ExpiredConfigFor(user string, groups ...string) (*rest.Config, error) {
	now := time.Now()
	return cp.configFor(now.Add(-2*time.Hour), now.Add(-time.Hour), user, groups)
}

func (cp *ControlPlane) configFor(notBefore, notAfter time.Time, user string, groups []string) (*rest.Config, error) {
	pair, err := cp.authority.client(notBefore, notAfter, user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: cp.url,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: cp.authority.pem, CertData: pair.cert, KeyData: pair.key,
		},
		QPS: -1,
	}, nil
}

// WriteKubeconfig writes a kubeconfig file that holds all it needs, with one context, "test", of namespace "default".
// The file can be read by its owner only.
func WriteKubeconfig(path string, c *rest.Config) error {
	const name = "test"
	cluster := clientcmdapi.NewCluster()
	cluster.Server = c.Host
	cluster.CertificateAuthorityData = c.CAData
	user := clientcmdapi.NewAuthInfo()
	user.ClientCertificateData = c.CertData
	user.ClientKeyData = c.KeyData
	user.Token = c.BearerToken
	kubeContext := clientcmdapi.NewContext()
	kubeContext.Cluster, kubeContext.AuthInfo, kubeContext.Namespace = name, name, "default"
	config := clientcmdapi.NewConfig()
	config.Clusters[name], config.AuthInfos[name], config.Contexts[name] = cluster, user, kubeContext
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

// Kubeconfig writes a kubeconfig file for the user in the test's own folder and returns its path. Without a user it is
// that of Config.
func (cp *ControlPlane) Kubeconfig(t testing.TB, user string, groups ...string) string {
	t.Helper()
	if user == "" {
		user, groups = "admin", []string{"system:masters"}
	}
	c, err := cp.ConfigFor(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := WriteKubeconfig(path, c); err != nil {
		t.Fatal(err)
	}
	return path
}

// startEtcd starts etcd with an empty store and returns the address that it serves.
func (cp *ControlPlane) startEtcd(ctx context.Context, path string) (url string, err error) {
	const anyPort = "http://127.0.0.1:0" // of the peers: there are none
	err = cp.startOnFreePort(ctx, "etcd", func(port int) (*process, func(context.Context) error, error) {
		url = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		p, err := startProcess("etcd", filepath.Join(cp.dir, "etcd.log"), path,
			"--name=test",
			"--data-dir="+filepath.Join(cp.dir, "etcd"),
			"--listen-client-urls="+url, "--advertise-client-urls="+url,
			"--listen-peer-urls="+anyPort, "--initial-advertise-peer-urls="+anyPort, "--initial-cluster=test="+anyPort,
			// The store is thrown away: what survives a power cut does not matter, and 38,000 objects do.
			"--unsafe-no-fsync",
			"--quota-backend-bytes="+strconv.Itoa(8<<30),
			"--log-level=warn")
		client := &http.Client{Timeout: 5 * time.Second}
		return p, func(ctx context.Context) error { return get(ctx, client, url+"/health") }, err
	})
	return url, err
}

// writeKeys makes the authority, and the key files that the API server reads.
func (cp *ControlPlane) writeKeys(now time.Time) error {
	ca, err := newAuthority(now)
	if err != nil {
		return err
	}
	cp.authority = ca
	server, err := ca.server(now, "kube-apiserver",
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)})
	if err != nil {
		return err
	}
	private, public, err := tokenKeys()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt": ca.pem, "server.crt": server.cert, "server.key": server.key, "tokens.key": private, "tokens.pub": public,
	} {
		if err := os.WriteFile(filepath.Join(cp.dir, name), data, 0o600); err != nil {
			return fmt.Errorf("writing the API server's keys: %w", err)
		}
	}
	return nil
}

// startAPIServer starts the API server over the store and waits until it is ready and has made the objects that every
// cluster has.
func (cp *ControlPlane) startAPIServer(ctx context.Context, path, store string, o Options) error {
	file := func(name string) string { return filepath.Join(cp.dir, name) }
	authorization := o.Authorization
	if authorization == "" {
		authorization = "RBAC"
	}
	return cp.startOnFreePort(ctx, "kube-apiserver", func(port int) (*process, func(context.Context) error, error) {
		cp.url = "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		args := []string{
			"--etcd-servers=" + store,
			"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
			// The address in the EndpointSlice of Service kubernetes. The API refuses loopback addresses there, and the
			// default is that of the machine's default route, which a machine without a network lacks.
			"--advertise-address=192.0.2.1",
			"--cert-dir=" + cp.dir,
			"--tls-cert-file=" + file("server.crt"), "--tls-private-key-file=" + file("server.key"),
			"--client-ca-file=" + file("ca.crt"),
			"--service-cluster-ip-range=" + ServiceCIDRv4 + "," + ServiceCIDRv6,
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + file("tokens.pub"), "--service-account-signing-key-file=" + file("tokens.key"),
			"--authorization-mode=" + authorization,
			"--anonymous-auth=" + strconv.FormatBool(o.Anonymous),
			"--disable-admission-plugins=ServiceAccount",
			"--allow-privileged=true",
			// Tests write many objects at once; the server's fair queues would only slow them down.
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
		}
		p, err := startProcess("kube-apiserver", file("kube-apiserver.log"), path, append(args, o.APIServerArgs...)...)
		if err != nil {
			return nil, nil, err
		}
		admin, err := cp.Config()
		if err != nil {
			return p, nil, err
		}
		client, err := rest.HTTPClientFor(admin)
		if err != nil {
			return p, nil, fmt.Errorf("making a client for the API server: %w", err)
		}
		return p, func(ctx context.Context) error {
			// The server is ready before its first loops have made these; a test should never see them appear.
			for _, path := range []string{
				"/readyz",
				"/api/v1/namespaces/default",
				"/api/v1/namespaces/kube-system",
				"/api/v1/namespaces/default/services/kubernetes",
				"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
			} {
				if err := get(ctx, client, cp.url+path); err != nil {
					return err
				}
			}
			return nil
		}, nil
	})
}

// startOnFreePort calls start with a free port, and waits until the probe that start returned succeeds. A port is only
// free until someone takes it: if the server ends because of that, another port is tried.
func (cp *ControlPlane) startOnFreePort(
	ctx context.Context, name string, start func(port int) (*process, func(context.Context) error, error),
) error {
	var err error
	for range portAttempts {
		var port int
		if port, err = freePort(); err != nil {
			return fmt.Errorf("choosing a port for %s: %w", name, err)
		}
		p, probe, startErr := start(port)
		if p != nil {
			cp.servers = append(cp.servers, p)
		}
		if startErr != nil {
			return startErr
		}
		if err = await(ctx, p, probe); err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		if stopErr := p.stop(); stopErr != nil {
			return errors.Join(err, stopErr)
		}
		cp.servers = cp.servers[:len(cp.servers)-1]
	}
	return err
}

// await calls probe until it succeeds. It gives up when the process has ended or ctx is done; its error then holds the
// last answer and the end of the log.
func await(ctx context.Context, p *process, probe func(context.Context) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w\n%s", p.name, ctx.Err(), err, tail(p.log))
		case <-tick.C:
		}
	}
}

// get asks for a URL and returns an error unless the answer is 200.
func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for %s: %s: %s", url, resp.Status, body)
	}
	return nil
}

// freePort returns a TCP port of 127.0.0.1 that nothing listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
