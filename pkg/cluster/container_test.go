package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const mountsYAML = `
kind: ConfigMap
metadata: {name: main, namespace: dns}
data: {Corefile: ". {\n}\n", extra: "e", sub: "s"}
---
kind: ConfigMap
metadata: {name: vars, namespace: dns}
data: {ZONE: example.test, UPSTREAM: 192.0.2.53}
---
kind: Pod
metadata: {name: p, namespace: dns}
spec:
  volumes:
  - {name: whole, configMap: {name: main}}
  - {name: items, configMap: {name: main, items: [{key: extra, path: deep/file}, {key: gone, path: gone}]}}
  - {name: missing, configMap: {name: nowhere}}
  - {name: optional, configMap: {name: nowhere, optional: true}}
  - {name: projected, projected: {sources: [{configMap: {name: main, items: [{key: sub, path: s}]}}, {secret: {name: x}}]}}
  - {name: secret, secret: {secretName: x}}
  containers:
  - name: c
    image: coredns/coredns:1.9.0
    workingDir: /work
    command: [sh, -c, "exec /coredns -conf $(CONF)"]
    envFrom:
    - {prefix: P_, configMapRef: {name: vars}}
    - {secretRef: {name: x}}
    env:
    - {name: DIR, value: /etc/coredns}
    - {name: CONF, value: $(DIR)/Corefile}
    - {name: ESCAPED, value: $$(DIR) $(NONE) $}
    - {name: UP, valueFrom: {configMapKeyRef: {name: vars, key: UPSTREAM}}}
    - {name: NOKEY, valueFrom: {configMapKeyRef: {name: vars, key: NO, optional: true}}}
    - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    volumeMounts:
    - {name: items, mountPath: /etc/coredns/custom}
    - {name: whole, mountPath: /etc/coredns/}
    - {name: whole, mountPath: /single, subPath: extra}
    - {name: items, mountPath: /dir, subPath: deep}
    - {name: missing, mountPath: /missing}
    - {name: optional, mountPath: /optional}
    - {name: projected, mountPath: /projected}
    - {name: secret, mountPath: /secret}
    - {name: unheard, mountPath: /unheard}
`

func TestContainer(t *testing.T) {
	s := snapshot(t, mountsYAML)
	spec := s.Pods[0].Spec
	c := newContainer(newConfigMaps(s), "dns", spec, &spec.Containers[0])

	if diff := cmp.Diff([]string{"sh", "-c", "exec", "/coredns", "-conf", "/etc/coredns/Corefile"}, c.words); diff != "" {
		t.Errorf("words: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"P_ZONE": "example.test", "P_UPSTREAM": "192.0.2.53", "DIR": "/etc/coredns", "CONF": "/etc/coredns/Corefile",
		"ESCAPED": "$(DIR) $(NONE) $", "UP": "192.0.2.53",
	}, c.env); diff != "" {
		t.Errorf("environment: %s", diff)
	}
	if diff := cmp.Diff([]string{"HOST_IP", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}, c.envUnknown); diff != "" {
		t.Errorf("unknown environment: %s", diff)
	}
	got := map[string]string{}
	for p, m := range c.mounts {
		got[p] = m.Object.Name + " " + m.Key
	}
	if diff := cmp.Diff(map[string]string{
		"/etc/coredns/Corefile": "main Corefile", "/etc/coredns/extra": "main extra", "/etc/coredns/sub": "main sub",
		"/etc/coredns/custom/deep/file": "main extra", "/single": "main extra", "/dir/file": "main extra", "/projected/s": "main sub",
	}, got); diff != "" {
		t.Errorf("files: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"/missing": "ConfigMap dns/nowhere was not found", "/projected": "a projected source of it is not read",
		"/secret": "Secrets are never read", "/unheard": "its volume is not in the pod",
	}, c.opaque); diff != "" {
		t.Errorf("opaque: %s", diff)
	}

	cf := corefileOf(CoreDNS, c)
	if cf == nil || cf.Path != "/etc/coredns/Corefile" || cf.Dir != "/work" {
		t.Fatalf("Corefile: %+v", cf)
	}
	for pattern, want := range map[string]string{
		"/etc/coredns/extra":      "ConfigMap dns/main extra",
		"/etc/coredns/e*":         "ConfigMap dns/main extra",
		"/etc/coredns/none":       "",
		"/etc/coredns/none*":      "",
		"/optional/*":             "",
		"/elsewhere/*.override":   "",
		"/etc/coredns/[":          "",
		"/secret/*":               "unread",
		"/missing/a":              "unread",
		"/elsewhere/file":         "unread",
		"/etc/coredns/custom/*/f": "",
	} {
		list, err := cf.Import(pattern)
		got := ""
		switch {
		case err != nil:
			got = "unread"
		case len(list) > 0:
			got = list[0].Name
		}
		if got != want {
			t.Errorf("import %s gives %q, want %q", pattern, got, want)
		}
	}
	for name, want := range map[string]string{"UP": "192.0.2.53", "HOST_IP": UnknownValue, "OTHER": "unset"} {
		got, ok := cf.Getenv(name)
		if !ok {
			got = "unset"
		}
		if got != want {
			t.Errorf("variable %s is %q, want %q", name, got, want)
		}
	}
}

func TestCorefilePath(t *testing.T) {
	for _, tc := range []struct {
		impl Implementation
		args []string
		dir  string
		want string
	}{
		{CoreDNS, []string{"-conf", "/etc/coredns/Corefile"}, "", "/etc/coredns/Corefile"},
		{CoreDNS, []string{"-conf=/x/Corefile"}, "", "/x/Corefile"},
		{CoreDNS, []string{"--conf", "/x/Corefile", "-dns.port=1053"}, "", "/x/Corefile"},
		{CoreDNS, []string{"--conf=Corefile"}, "/x", "/x/Corefile"},
		{CoreDNS, nil, "/x", "/x/Corefile"},
		{CoreDNS, nil, "", ""},
		{CoreDNS, []string{"-conf"}, "", ""},
		{NodeLocalDNS, []string{"-localip", "169.254.20.10", "-conf", "/etc/Corefile"}, "", "/etc/coredns/Corefile.base"},
		{NodeLocalDNS, []string{"-basecorefile=/x/Corefile", "-conf", "/etc/Corefile"}, "", "/x/Corefile"},
		{NodeLocalDNS, []string{"-conf", "/x/Corefile", "-basecorefile", "/none"}, "", "/etc/coredns/Corefile.base"},
	} {
		c := &container{spec: &corev1.Container{WorkingDir: tc.dir}, words: tc.args, mounts: map[string]Mount{
			"/etc/coredns/Corefile": {}, "/x/Corefile": {}, "/etc/coredns/Corefile.base": {},
		}}
		got := ""
		if cf := corefileOf(tc.impl, c); cf != nil {
			got = cf.Path
		}
		if got != tc.want {
			t.Errorf("%s %v in %q reads %q, want %q", tc.impl, tc.args, tc.dir, got, tc.want)
		}
	}
}

func TestServerContainer(t *testing.T) {
	for _, tc := range []struct {
		container corev1.Container
		label     string
		want      Implementation
	}{
		{corev1.Container{Image: "quay.io/oriedge/k8s_gateway:v0.4.0", Args: []string{"-conf", "/etc/coredns/Corefile"}}, "", CoreDNS},
		{corev1.Container{Image: "registry.example.test/x@sha256:1", Command: []string{"/usr/bin/coredns"}}, "", CoreDNS},
		{corev1.Container{Image: "registry.example.test/x@sha256:1", Command: []string{"/node-cache"}}, "", NodeLocalDNS},
		{corev1.Container{Image: "registry.example.test/x@sha256:1", Name: "coredns"}, "kube-dns", CoreDNS},
		{corev1.Container{Image: "registry.example.test/x@sha256:1", Name: "kubedns"}, "kube-dns", KubeDNS},
		{corev1.Container{Image: "registry.example.test/x@sha256:1", Name: "coredns"}, "", ""},
		{corev1.Container{Image: "registry.example.test/x@sha256:1", Name: "app", Args: []string{"-config", "app.yaml"}}, "", ""},
	} {
		w := &Workload{Labels: map[string]string{"k8s-app": tc.label}, Spec: &corev1.PodSpec{Containers: []corev1.Container{tc.container}}}
		if got, _ := serverContainer(w); got != tc.want {
			t.Errorf("%v with label %q is %q, want %q", tc.container, tc.label, got, tc.want)
		}
	}
}

// A value that repeats another one, and so on, doubles with every variable.
func TestExpandIsBounded(t *testing.T) {
	spec := &corev1.Container{Env: []corev1.EnvVar{{Name: "V0", Value: strings.Repeat("x", 1024)}}}
	for i := range 60 {
		last := spec.Env[i].Name
		spec.Env = append(spec.Env, corev1.EnvVar{Name: last + "x", Value: strings.Repeat("$("+last+")", 8)})
	}
	c := newContainer(configMaps{}, "dns", &corev1.PodSpec{}, spec)
	for name, v := range c.env {
		if len(v) > 2*maxExpanded {
			t.Fatalf("%s has %d bytes", name, len(v))
		}
	}
}

func TestMountsAreBounded(t *testing.T) {
	cm := &corev1.ConfigMap{Data: map[string]string{}}
	cm.Namespace, cm.Name = "dns", "many"
	for i := range 1000 {
		cm.Data[strings.Repeat("k", i+1)] = ""
	}
	spec := &corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "many"}, Optional: new(true)},
	}}}}
	var c corev1.Container
	for i := range 20 {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/" + strings.Repeat("m", i+1)})
	}
	if got := newContainer(newConfigMaps(&Snapshot{ConfigMaps: []*corev1.ConfigMap{cm}}), "dns", spec, &c); len(got.mounts) != maxMounts {
		t.Errorf("%d files, want %d", len(got.mounts), maxMounts)
	}
}

func FuzzContainer(f *testing.F) {
	f.Add("-conf", "$(A)/Corefile", "$$(A)", "/etc/../x", "a/b")
	f.Add("--conf=$(B)", "$(", "$(A)$(B)", "//", "..")
	f.Fuzz(func(t *testing.T, arg, arg2, value, mount, sub string) {
		cm := &corev1.ConfigMap{Data: map[string]string{"Corefile": value, sub: arg}}
		cm.Namespace, cm.Name = "dns", "main"
		spec := &corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "main"}, Items: []corev1.KeyToPath{{Key: "Corefile", Path: sub}},
			}}}},
			Containers: []corev1.Container{{
				Args: []string{arg, arg2}, Env: []corev1.EnvVar{{Name: "A", Value: value}, {Name: "B", Value: arg2}},
				VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: mount}, {Name: "v", MountPath: mount, SubPath: sub, SubPathExpr: value}},
			}},
		}
		c := newContainer(newConfigMaps(&Snapshot{ConfigMaps: []*corev1.ConfigMap{cm}}), "dns", spec, &spec.Containers[0])
		for p := range c.mounts {
			if !strings.HasPrefix(p, "/") || strings.Contains(p+"/", "/../") {
				t.Errorf("a file is mounted at %q", p)
			}
		}
		if cf := corefileOf(CoreDNS, c); cf != nil && cf.Expanded == nil {
			t.Error("a Corefile without its expansion")
		}
	})
}
