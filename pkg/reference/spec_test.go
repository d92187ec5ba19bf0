package reference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// configMaps returns a look-up over ConfigMaps given as name → data.
func configMaps(data map[string]map[string]string) func(string) *corev1.ConfigMap {
	return func(name string) *corev1.ConfigMap {
		d, ok := data[name]
		if !ok {
			return nil
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "payments"}, Data: d}
	}
}

// evidence writes each reference as "host:port: origin".
func evidence(refs []Reference) string {
	var b strings.Builder
	for _, r := range refs {
		fmt.Fprintf(&b, "%s: %s\n", short([]Reference{r}), r.Origin)
	}
	return b.String()
}

func TestSpec(t *testing.T) {
	data := map[string]map[string]string{
		"settings": {"LEDGER_URL": "http://from-settings", "DB_HOST": "db", "unused.yaml": "a: http://only-as-variable"},
		"more":     {"LEDGER_URL": "http://from-more"},
		"files": {
			"application.yaml": "\nledger:\n  url: http://mounted\n",
			"hidden.yaml":      "url: http://hidden\n",
			"proxy":            "location / { proxy_pass http://backend; proxy_pass http://real; }\n# end\n",
		},
		"upstreams": {"up.conf": "upstream backend {\n  server member:80;\n}\n"},
		"whole":     {"b.properties": "host=second\n", "a.properties": "host=first\n", "ca.crt": "http://cert\n"},
		"unmounted": {"x.yaml": "url: http://unmounted\n"},
	}
	tests := []struct{ name, spec, want string }{
		{"the case", `
containers:
- name: api
  env: [{name: OTHER, value: "https://my-app/hello"}]
`, `https://my-app: env OTHER
`},
		{"expansion", `
containers:
- name: api
  env:
  - {name: LATE, value: "http://$(HOST):80"}
  - {name: HOST, value: ledger}
  - {name: URL, value: "http://$(HOST):$(PORT)/$$(HOST)"}
  - {name: DOLLAR, value: "http://a$$b"}
  - {name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: FQDN, value: "ledger.$(NS).svc.cluster.local"}
  - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: SELF, value: "$(POD).headless.$(NS).svc.cluster.local"}
  - {name: PW, valueFrom: {secretKeyRef: {name: s, key: k}}}
  - {name: DB, value: "postgres://u:$(PW)@db:5432/x"}
  - {name: SVC, value: "http://$(LEDGER_SERVICE_HOST):80/"}
  - {name: OPEN, value: "http://$(HOST"}
`, `ledger?: env HOST
http://ledger: env URL
ledger.payments.svc.cluster.local: env FQDN
postgres://db:5432: env DB
`},
		{"sources of variables", `
containers:
- name: api
  envFrom:
  - {configMapRef: {name: settings}}
  - {configMapRef: {name: more}}
  - {configMapRef: {name: settings}, prefix: A_}
  - {configMapRef: {name: absent}}
  - {secretRef: {name: s}}
  env:
  - {name: DB_HOST, value: over}
  - {name: B_HOST, valueFrom: {configMapKeyRef: {name: settings, key: DB_HOST}}}
  - {name: A_DB_HOST, valueFrom: {configMapKeyRef: {name: settings, key: absent, optional: true}}}
  - {name: FROM_URL, value: "$(LEDGER_URL)/x"}
  - {name: UNKNOWN, valueFrom: {configMapKeyRef: {name: absent, key: x}}}
  - {name: C_HOST, value: "x-$(UNKNOWN)"}
`, `over: env DB_HOST
http://from-more: env LEDGER_URL from ConfigMap payments/more LEDGER_URL
http://only-as-variable: env unused.yaml from ConfigMap payments/settings unused.yaml
db: env A_DB_HOST from ConfigMap payments/settings DB_HOST
http://from-settings: env A_LEDGER_URL from ConfigMap payments/settings LEDGER_URL
http://only-as-variable: env A_unused.yaml from ConfigMap payments/settings unused.yaml
db: env B_HOST from ConfigMap payments/settings DB_HOST
http://from-more: env FROM_URL
`},
		{"flags", `
containers:
- name: api
  command: [/bin/app, "memcached:11211"]
  args: ["--ledger-endpoint=ledger:8443", --db-host, db, "-addr=cache:6379", "--listen-address=api:80", "--log-level", info,
    "--image", "redis:6379", "--db=postgres://u:secret@pg:5432/x?sslmode=off", "--token-url=https://hooks.example.org/T/secret",
    "--dsn=u:secret@tcp(mysql:3306)/x", "--config=/etc/x.yaml", "--peers", "a:1,b:2", "--namespace", ledger, "--server", start,
    "--set=x=y", "-e", "DB_HOST=e-host", "DB_HOST=word", "positional.payments.svc:80"]
`, `memcached:11211?: command app memcached:11211
ledger:8443: args --ledger-endpoint=ledger:8443
db: args --db-host db
cache:6379: args -addr=cache:6379
postgres://pg:5432: args --db=postgres://***@pg:5432/…
https://hooks.example.org: args --token-url=https://hooks.example.org/…
mysql:3306: args --dsn=***@mysql:3306/…
a:1: args --peers a:1
b:2: args --peers b:2
e-host: args DB_HOST=e-host
word: args DB_HOST=word
positional.payments.svc:80: args app positional.payments.svc:80
`},
		{"names of objects", `
containers:
- name: api
  args: [--caSecretName=a.b.svc.c, --tls-secret, a.b.svc.c, --ingress-class=a.b.svc.c, --ca-url=http://a]
`, `http://a: args --ca-url=http://a
`},
		{"images", `
containers:
- name: docker
  command: [docker, -H, "tcp://dind:2375", run, -d, -e, DB_HOST=db, --hostname=web, "redis:6379", redis-server, --url=http://called]
- name: skopeo
  command: [skopeo, copy, "docker://registry:5000/a:1", "docker://mirror.ops.svc.cluster.local:5000/a:1"]
- name: crane
  command: [crane, digest, "registry.ops.svc.cluster.local:5000/a"]
- name: trivy
  command: [trivy, image, --server, "http://trivy:4954", "redis:6379"]
- name: cosign
  command: [sh, -c, "cosign verify redis:6379 && podman pull redis:6379 && buildah push x docker://registry:5000/x; curl http://after"]
- name: kaniko
  args: [--dockerfile=Dockerfile, "--context=git://git/x", "--destination=registry:5000/a", --destination, "registry:5000/b"]
- name: copy
  args: ["--destination=ledger:8443"]
`, `tcp://dind:2375: command docker tcp://dind:2375
db: command DB_HOST=db
http://called: command --url=http://called
http://trivy:4954: command --server http://trivy:4954
http://after: command curl http://after
git://git: args --context=git://git/…
ledger:8443: args --destination=ledger:8443
`},
		{"shell", `
initContainers:
- name: wait
  command: [sh, -c, "until nc -z db 5432; do echo waiting for http://db; done"]
- name: exec
  command: [nslookup, resolved]
- name: psql
  command: [/usr/bin/pg_isready, -h, pg, -p, "5432"]
- name: tini
  command: [/sbin/tini, --, /bin/bash, -ec]
  args: ["curl -u user:secret http://u:p@a/b?token=secret && wget http://$(hostname)/x; exec app --url=http://${X}/ --to=http://z"]
- name: entry
  args: ["-c", "curl http://entry/x"]
containers: []
`, `db:5432: command nc db:5432
resolved: command nslookup resolved
pg: command -h pg
http://a: args curl http://***@a/…
http://z: args --to=http://z
http://entry: args curl http://entry/…
`},
		{"mounted files", `
volumes:
- {name: files, configMap: {name: files, items: [{key: application.yaml, path: cfg/app.yaml}, {key: proxy, path: proxy.conf}]}}
- {name: all, projected: {sources: [{configMap: {name: whole}}, {secret: {name: s}}, {configMap: {name: upstreams}}]}}
- {name: unmounted, configMap: {name: unmounted}}
- {name: absent, configMap: {name: absent}}
- {name: secret, secret: {secretName: settings}}
containers:
- name: api
  volumeMounts: [{name: files, mountPath: /cfg, subPath: cfg}, {name: absent, mountPath: /x}, {name: secret, mountPath: /y}]
- name: web
  volumeMounts: [{name: files, mountPath: /a, subPath: proxy.conf}, {name: all, mountPath: /b}, {name: nosuch, mountPath: /c}]
`, `http://mounted: ConfigMap payments/files application.yaml:3
http://real: ConfigMap payments/files proxy:1
first: ConfigMap payments/whole a.properties:1
second: ConfigMap payments/whole b.properties:1
member:80: ConfigMap payments/upstreams up.conf:2
`},
		{"names that never reach a server", `
hostname: self
hostAliases: [{ip: 192.0.2.1, hostnames: [Aliased, aliased.example.org]}]
containers:
- name: api
  env: [{name: A_HOST, value: aliased}, {name: B_HOST, value: ALIASED.example.org.}, {name: C_HOST, value: self}, {name: D_HOST, value: other}]
`, `other: env D_HOST
`},
		{"ephemeral containers", `
containers: []
ephemeralContainers: [{name: debug, env: [{name: A_HOST, value: a}]}]
`, `a: env A_HOST
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var spec corev1.PodSpec
			if err := yaml.UnmarshalStrict([]byte(tt.spec), &spec); err != nil {
				t.Fatal(err)
			}
			before := spec.DeepCopy()
			got := evidence(FromSpec(&spec, "payments", configMaps(data), Options{}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, &spec); diff != "" {
				t.Errorf("the spec was changed:\n%s", diff)
			}
			if strings.Contains(got, "secret") {
				t.Errorf("evidence shows a secret:\n%s", got)
			}
			FromSpec(&spec, "payments", nil, Options{})
		})
	}
}

func TestSpecContainer(t *testing.T) {
	spec := &corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "c"},
		}}}},
		Containers: []corev1.Container{
			{Name: "a", VolumeMounts: []corev1.VolumeMount{{Name: "v"}}},
			{Name: "b", VolumeMounts: []corev1.VolumeMount{{Name: "v"}}, Env: []corev1.EnvVar{{Name: "X_HOST", Value: "x"}}},
		},
	}
	other := &corev1.PodSpec{Volumes: spec.Volumes, Containers: []corev1.Container{{Name: "z", VolumeMounts: []corev1.VolumeMount{{Name: "v"}}}}}
	f := NewFinder(Options{})
	look := configMaps(map[string]map[string]string{"c": {"f.yaml": "host: h\n"}})
	want := []Reference{
		{Host: "x", Strength: Certain, Origin: Origin{Kind: Env, Container: "b", Key: "X_HOST"}},
		{Host: "h", Strength: Certain, Origin: Origin{Kind: ConfigMap, Container: "a", Key: "host", Namespace: "payments", ConfigMap: "c", DataKey: "f.yaml", Line: 1}},
	}
	if diff := cmp.Diff(want, f.Spec(spec, "payments", look)); diff != "" {
		t.Error(diff)
	}
	// The second pod finds what is remembered of the file, under its own container.
	want = want[1:]
	want[0].Origin.Container = "z"
	if diff := cmp.Diff(want, f.Spec(other, "payments", look)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"c"}, ConfigMaps(spec)); diff != "" {
		t.Error(diff)
	}
}

func TestNoSpec(t *testing.T) {
	if refs := FromSpec(nil, "payments", nil, Options{}); refs != nil {
		t.Errorf("references %v", refs)
	}
	if names := ConfigMaps(nil); names != nil {
		t.Errorf("ConfigMaps %v", names)
	}
	if names := HostAliases(nil); names != nil {
		t.Errorf("names %v", names)
	}
}

// TestExpand follows the table of k8s.io/kubernetes third_party/forked/golang/expansion/expand_test.go.
func TestExpand(t *testing.T) {
	e := &envs{index: map[string]int{}}
	e.set(variable{name: "A", value: "foo"})
	e.set(variable{name: "EMPTY"})
	for in, want := range map[string]string{
		"$(A)": "foo", "x$(A)y": "xfooy", "$$(A)": "$(A)", "$$$(A)": "$foo", "$$$$(A)": "$$(A)", "$(B)": "$(B)", "$(EMPTY)x": "x",
		"$(A": "$(A", "$": "$", "a$": "a$", "$x": "$x", "$()": "$()", "$(A)$(A)": "foofoo", "$(A$(A)": "$(A$(A)", "$$": "$", "f$$": "f$",
		"$(": "$(", "$(a$$": "$(a$",
	} {
		if got := e.expand(in); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestExpandIsBounded doubles a variable forty times.
func TestExpandIsBounded(t *testing.T) {
	var env []corev1.EnvVar
	last := "seed"
	for i := range 40 {
		name := fmt.Sprintf("V%d", i)
		env = append(env, corev1.EnvVar{Name: name, Value: strings.Repeat(last, 2)})
		last = "$(" + name + ")"
	}
	c := &corev1.Container{Env: env}
	for _, v := range environment(c, &corev1.PodSpec{}, "n", func(string) *corev1.ConfigMap { return nil }).vars {
		if len(v.value) > MaxText {
			t.Fatalf("%s has %d bytes", v.name, len(v.value))
		}
	}
}

func FuzzFromSpec(f *testing.F) {
	f.Add("sh", "-c", "curl http://a/b", "X_HOST", "$(Y)", "$$(Z)http://u:secret@b")
	f.Add("--a=b:1", "--host", "c", "URL", "http://d", "x")
	f.Fuzz(func(t *testing.T, a, b, c, name, value, next string) {
		spec := &corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Command: []string{a}, Args: []string{b, c},
			Env: []corev1.EnvVar{{Name: name, Value: value}, {Name: "NEXT", Value: next}},
		}}}
		for _, r := range FromSpec(spec, "n", nil, Options{}) {
			if !isHost(r.Host) || strings.ToLower(r.Host) != r.Host {
				t.Errorf("%q is no host name in lower case", r.Host)
			}
			if r.Origin.Line != 0 {
				t.Errorf("line %d for %s", r.Origin.Line, r.Origin)
			}
			_ = r.Origin.String()
		}
	})
}
