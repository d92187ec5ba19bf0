package load_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/dnsmesh/kubectl-dnsmesh/internal/realtool"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster"
	"github.com/dnsmesh/kubectl-dnsmesh/pkg/cluster/load"
)

// TestRealServer reads a real API server: in pages, with rights of every kind, and compares what it reads with what the
// same objects give as files.
func TestRealServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	cp := realtool.New(t, realtool.Options{})
	config := func(c *rest.Config, err error) *rest.Config {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	admin := config(cp.Config())
	admin.QPS = -1
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	fillRealServer(t, client)

	live := func(t *testing.T, c *rest.Config, o load.Options) *load.Result {
		t.Helper()
		r, err := load.Live(t.Context(), c, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	whole := live(t, admin, load.Options{Name: "real"}).Snapshot

	t.Run("objects", func(t *testing.T) {
		if len(whole.Absent) > 0 || !strings.HasPrefix(whole.ServerVersion, "v1.") || len(whole.APIGroups) < 10 {
			t.Errorf("absent %v, version %q, groups %q", whole.Absent, whole.ServerVersion, whole.APIGroups)
		}
		owners := map[string]string{}
		for _, p := range whole.Pods {
			owners[p.Name] = p.Owner.Kind + " " + p.Owner.Name
		}
		want := map[string]string{"web-abc-1": "Deployment web", "web-abc-2": "Deployment web", "manual-1": "CronJob nightly", "alone": "Pod alone"}
		if diff := cmp.Diff(want, owners); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
		var maps []string
		for _, c := range whole.ConfigMaps {
			maps = append(maps, c.Namespace+"/"+c.Name)
		}
		if diff := cmp.Diff([]string{"kube-system/coredns", "shop/settings"}, maps); diff != "" {
			t.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
	})

	t.Run("pages", func(t *testing.T) {
		paged := live(t, admin, load.Options{Name: "real", PageSize: 7}).Snapshot
		if diff := cmp.Diff(whole, paged); diff != "" {
			t.Errorf("(-one page +pages of 7):\n%s", diff)
		}
	})

	t.Run("saved", func(t *testing.T) {
		var b bytes.Buffer
		if err := load.Write(&b, whole, ""); err != nil {
			t.Fatal(err)
		}
		r, err := load.Files(t.Context(), []string{"-"}, &b, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, r.Snapshot); diff != "" {
			t.Errorf("(-live +saved):\n%s", diff)
		}
	})

	t.Run("lists as the server writes them in JSON", func(t *testing.T) {
		var parts []io.Reader
		for _, path := range []string{
			"/api/v1/namespaces", "/api/v1/services", "/api/v1/pods", "/api/v1/configmaps", "/api/v1/nodes",
			"/apis/discovery.k8s.io/v1/endpointslices", "/apis/batch/v1/jobs", "/api/v1/secrets",
		} {
			raw, err := client.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, bytes.NewReader(raw), strings.NewReader("\n"))
		}
		r, err := load.Files(t.Context(), []string{"-"}, io.MultiReader(parts...), load.Options{Name: "real"})
		if err != nil {
			t.Fatal(err)
		}
		if r.Skipped["Secret"] != 1 {
			t.Errorf("skipped %v", r.Skipped)
		}
		opts := cmpopts.IgnoreFields(cluster.Snapshot{}, "ServerVersion", "APIGroups", "Partial", "Absent")
		if diff := cmp.Diff(whole, r.Snapshot, opts); diff != "" {
			t.Errorf("(-live +files):\n%s", diff)
		}
	})

	t.Run("one right is missing", func(t *testing.T) {
		grant(t, client, "", "no-nodes", "namespaces", "services", "endpointslices", "pods", "configmaps")
		s := live(t, config(cp.ConfigFor("no-nodes")), load.Options{}).Snapshot
		if why := s.Absent[cluster.Nodes]; !strings.Contains(why, `User "no-nodes" cannot list resource "nodes"`) || len(s.Absent) != 1 {
			t.Errorf("absent %v", s.Absent)
		}
		// Without the right to list Jobs the CronJob stays unknown: the name of this Job does not tell.
		for _, p := range s.Pods {
			if p.Name == "manual-1" && p.Owner.Kind != "Job" {
				t.Errorf("owner %v", p.Owner)
			}
		}
	})

	t.Run("one namespace", func(t *testing.T) {
		grant(t, client, "shop", "dev", "services", "endpointslices", "pods", "configmaps")
		s := live(t, config(cp.ConfigFor("dev")), load.Options{Namespace: "shop"}).Snapshot
		if len(s.Services) != 25 || !strings.HasPrefix(s.Absent[cluster.Services], "only namespace shop was read") || len(s.Pods) != 4 {
			t.Errorf("%d Services, %d pods, absent %v", len(s.Services), len(s.Pods), s.Absent)
		}
	})

	t.Run("no rights", func(t *testing.T) {
		_, err := load.Live(t.Context(), config(cp.ConfigFor("nobody")), load.Options{})
		if err == nil || !strings.Contains(err.Error(), "nothing could be read") {
			t.Errorf("error %v", err)
		}
	})

	t.Run("unknown token", func(t *testing.T) {
		c := rest.AnonymousClientConfig(admin)
		c.BearerToken = "expired"
		if _, err := load.Live(t.Context(), c, load.Options{}); !errors.Is(err, load.ErrUnauthorized) {
			t.Errorf("error %v", err)
		}
	})

	t.Run("expired certificate", func(t *testing.T) {
		_, err := load.Live(t.Context(), config(cp.ExpiredConfigFor("late")), load.Options{})
		if !errors.Is(err, load.ErrUnauthorized) {
			t.Errorf("error %v", err)
		}
	})
}

// fillRealServer writes a few objects of every kind that is read, and a Secret.
func fillRealServer(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, create := t.Context(), metav1.CreateOptions{}
	var errs []error
	made := func(_ any, err error) { errs = append(errs, err) }
	// The API server makes kube-system itself, but not before it says that it is ready.
	for _, ns := range []string{"shop", "kube-system"} {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, create)
		if ns == "shop" {
			errs = append(errs, err)
		}
	}
	for i := range 25 {
		made(client.CoreV1().Services("shop").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%02d", i), Annotations: map[string]string{"note": "x"}},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"}},
		}, create))
	}
	made(client.CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "b", "c": "d"},
	}, create))
	made(client.CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unused"}}, create))
	made(client.CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns"}, Data: map[string]string{"Corefile": ".:53 {\n    whoami\n}\n"},
	}, create))
	made(client.CoreV1().Secrets("shop").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}}, create))
	made(client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, create))
	yes := true
	owner := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "1", Controller: &yes}}
	}
	template := corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{
		Name: "c", Image: "web.example.org/web:1", Args: []string{"--db=db:5432"},
		Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "a",
		}}}},
	}}}
	for _, p := range []metav1.ObjectMeta{
		{Name: "web-abc-1", Labels: map[string]string{"pod-template-hash": "abc"}, OwnerReferences: owner("ReplicaSet", "web-abc")},
		{Name: "web-abc-2", Labels: map[string]string{"pod-template-hash": "abc"}, OwnerReferences: owner("ReplicaSet", "web-abc")},
		{Name: "manual-1", OwnerReferences: owner("Job", "manual")},
		{Name: "alone"},
	} {
		made(client.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{ObjectMeta: p, Spec: template}, create))
	}
	jobTemplate := *template.DeepCopy()
	jobTemplate.RestartPolicy = corev1.RestartPolicyNever
	made(client.BatchV1().Jobs("shop").Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "manual", OwnerReferences: owner("CronJob", "nightly")},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: jobTemplate}},
	}, create))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// grant lets a user list resources, in one namespace or, with an empty one, in all, and waits until the server knows.
func grant(t *testing.T, client kubernetes.Interface, namespace, user string, resources ...string) {
	t.Helper()
	ctx, create := t.Context(), metav1.CreateOptions{}
	meta := metav1.ObjectMeta{Name: user}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"", "discovery.k8s.io"}, Resources: resources, Verbs: []string{"list"}}}
	subjects := []rbacv1.Subject{{Kind: "User", Name: user}}
	var err error
	if namespace == "" {
		_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, create)
		if err == nil {
			ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: user}
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx,
				&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, create)
		}
	} else {
		_, err = client.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, create)
		if err == nil {
			ref := rbacv1.RoleRef{Kind: "Role", Name: user}
			_, err = client.RbacV1().RoleBindings(namespace).Create(ctx,
				&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, create)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Resource: "services"},
	}}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, create)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status.Allowed {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not let %s list services", user)
		case <-tick.C:
		}
	}
}
