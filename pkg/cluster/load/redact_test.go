package load

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/reference"
)

// private are objects full of names that nobody else should see.
const private = `apiVersion: v1
kind: Namespace
metadata: {name: acme-legacy, labels: {kubernetes.io/metadata.name: acme-legacy, acme.example/team: rocket}}
---
apiVersion: v1
kind: Namespace
metadata: {name: dev}
---
apiVersion: v1
kind: Service
metadata: {name: ledger, namespace: acme-legacy}
spec: {type: ExternalName, externalName: ledger.acme-new.svc.cluster.local}
---
apiVersion: v1
kind: Service
metadata: {name: ledger, namespace: acme-new}
spec: {clusterIP: None, selector: {app: ledger}, externalIPs: [8.9.10.11]}
---
apiVersion: v1
kind: Service
metadata: {name: wrong, namespace: acme-new}
spec: {type: ExternalName, externalName: "https://Acme_Bakery.example.org/"}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec: {clusterIP: 10.96.0.10, selector: {k8s-app: kube-dns}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: rocket-api, namespace: acme-legacy}
spec:
  template:
    metadata: {labels: {app: rocket-api}}
    spec:
      hostAliases: [{ip: 10.0.0.1, hostnames: [erp.acme.example]}]
      containers:
      - name: rocket
        image: registry.acme.example/rocket/api:1.2
        command: [sh, -c, "curl -u bob:hunter2 http://ledger:8080/private/path && exec rocket"]
        args: ["--ledger-endpoint=ledger:8443", "--customer", "wile-coyote", "--upstream", "http://ledger.acme-new:9000/x", "hunter2"]
        env:
        - {name: LEDGER_URL, value: "https://bob:hunter2@ledger.acme-new.svc.cluster.local:8443/v1?token=hunter2"}
        - {name: DB_HOST, value: ledger}
        - {name: BROKERS, value: "kafka-0.kafka:9092,kafka-1.kafka:9092"}
        - {name: DSN, value: "jdbc:postgresql://ledger:5432/rocket"}
        - {name: PASSWORD, value: hunter2}
        - {name: CACHE_HOST, valueFrom: {configMapKeyRef: {name: rocket-env, key: cache}}}
        volumeMounts: [{name: files, mountPath: /etc/rocket}]
      volumes: [{name: files, configMap: {name: rocket-files}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: rocket-env, namespace: acme-legacy}
data: {cache: "ledger.acme-new"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: rocket-files, namespace: acme-legacy}
data:
  application.yaml: |
    # wile-coyote pays
    customer: wile-coyote
    ledger:
      url: http://ledger:8080/private
      password: hunter2
    other: {endpoint: "ledger.acme-new:443"}
  app.properties: |
    password=hunter2
    ledger.url=http://ledger.acme-new:81
  app.json: |
    {
      "password": "hunter2",
      "url": "https://ledger.acme-new:82/x"
    }
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    # written by bob
    .:53 {
        errors
        rewrite name regex (.*)\.acme\.lan\.$ {1}.acme-new.svc.cluster.local answer auto
        rewrite name suffix .Acme.example .acme-new.svc.cluster.local
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            fallthrough in-addr.arpa
            ttl 30
        }
        file /etc/coredns/acme.zone acme.example
        forward . 8.8.8.8 45.67.89.10:5353 /etc/resolv.conf {
            health_check 0.5s
        }
        cache 30
    }
`

// references are what the workloads of s refer to, in an order of their own. name is applied to the hosts.
func references(s *cluster.Snapshot, name func(string) string) []string {
	f := reference.NewFinder(reference.Options{})
	maps := map[object]*corev1.ConfigMap{}
	for _, c := range s.ConfigMaps {
		maps[object{c.Namespace, c.Name}] = c
	}
	var out []string
	for _, w := range s.Workloads() {
		for _, r := range f.Spec(w.Spec, w.Object.Namespace, func(n string) *corev1.ConfigMap { return maps[object{w.Object.Namespace, n}] }) {
			out = append(out, fmt.Sprintf("%s %s %s %d %s %d", w.Object.Kind, name(w.Object.Name), name(r.Host), r.Port, r.Scheme, r.Origin.Line))
		}
	}
	slices.Sort(out)
	return out
}

func TestRedact(t *testing.T) {
	s := mustRead(t, private).Snapshot
	s.Absent[cluster.Nodes] = `listing nodes is forbidden: User "bob" cannot list`
	key := []byte("key")
	x := Redact(s, key)
	r := newRedactor(s, key)

	want, got := references(s, r.name), references(x, func(n string) string { return n })
	if len(want) < 11 {
		t.Errorf("only %d references in the fixture: %q", len(want), want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-mapped +found after redaction):\n%s", diff)
	}

	text := saved(t, x)
	for _, secret := range []string{
		"acme", "Acme", "rocket", "ledger.", `"ledger"`, "hunter2", "bob", "wile", "coyote", "45.67.89.10", "8.9.10.11", "private", "bakery", "Bakery", "kafka",
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is left in\n%s", secret, text)
		}
	}
	for _, kept := range []string{"kube-system", "kube-dns", "coredns", "cluster.local", "10.96.0.10", "8.8.8.8", `"dev"`, "LEDGER_URL", "--ledger-endpoint=", "None", "Deployment"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%q is gone from\n%s", kept, text)
		}
	}
	corefile := r.name("acme") + `\.lan\.$ {1}.` + r.name("acme-new") + ".svc.cluster.local answer auto"
	i := slices.IndexFunc(x.ConfigMaps, func(c *corev1.ConfigMap) bool { return c.Name == "coredns" })
	if got := x.ConfigMaps[i].Data["Corefile"]; !strings.Contains(got, corefile) ||
		!strings.Contains(got, ".N") || !strings.Contains(got, ":5353") || !strings.Contains(got, "health_check 0.5s") {
		t.Errorf("Corefile\n%s", got)
	}
	alias := r.name("ledger") + "." + r.name("acme-new") + ".svc.cluster.local"
	if !slices.ContainsFunc(x.Services, func(v *corev1.Service) bool { return v.Spec.ExternalName == alias }) {
		t.Errorf("no alias to %s", alias)
	}
	if diff := cmp.Diff(mustRead(t, private).Snapshot.Services, s.Services); diff != "" {
		t.Errorf("the original changed: %s", diff)
	}
}

func TestRedactKeys(t *testing.T) {
	s := mustRead(t, private).Snapshot
	a, b, c := saved(t, Redact(s, []byte("a"))), saved(t, Redact(s, []byte("a"))), saved(t, Redact(s, []byte("b")))
	if a != b {
		t.Error("one key gives two results")
	}
	if a == c {
		t.Error("two keys give one result")
	}
}

// TestRedactedRoundTrip reads a redacted snapshot back.
func TestRedactedRoundTrip(t *testing.T) {
	for seed := range uint64(10) {
		x := Redact(anySnapshot(seed), []byte("k"))
		var b bytes.Buffer
		if err := Write(&b, x, ""); err != nil {
			t.Fatal(err)
		}
		r, err := Files(t.Context(), []string{"-"}, &b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x, r.Snapshot); diff != "" {
			t.Fatalf("seed %d: (-redacted +read):\n%s", seed, diff)
		}
	}
}
