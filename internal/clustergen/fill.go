package clustergen

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// writers is how many requests are under way at once while a cluster is filled. The API server works on each for some
// milliseconds, most of them waiting for its store.
const writers = 48

// Fill creates the objects of the cluster in an API server, and sets the status of pods and nodes as kubelets would. It
// returns when all of it is written. The server must not have objects of these names but those that it makes by itself,
// and must accept pods whose service account does not exist.
func (c *Cluster) Fill(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("filling the API server: %w", err)
	}
	// Everything else needs the namespaces.
	group, namespaces := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for n := range c.Namespaces() {
		group.Go(func() error { return Create(namespaces, client, n) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("filling the API server: %w", err)
	}
	group, written := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	err = c.each(func(object any) error {
		if _, done := object.(*corev1.Namespace); done {
			return nil
		}
		group.Go(func() error { return Create(written, client, object) })
		return written.Err()
	})
	if waited := group.Wait(); waited != nil {
		err = waited // the cause of the end of the context
	}
	if err != nil {
		return fmt.Errorf("filling the API server: %w", err)
	}
	return nil
}

// Field managers are those that own the fields in a real cluster.
const (
	controllers = "kube-controller-manager"
	kubelet     = "kubelet"
	helm        = "helm"
)

// Create writes one object with its status. It takes the kinds that Fill writes; a namespace that the API server makes by
// itself, and the Service kubernetes, may be there already.
func Create(ctx context.Context, client kubernetes.Interface, object any) error {
	by := func(manager string) metav1.CreateOptions { return metav1.CreateOptions{FieldManager: manager} }
	status := metav1.UpdateOptions{FieldManager: kubelet}
	switch o := object.(type) {
	case *corev1.Namespace:
		_, err := client.CoreV1().Namespaces().Create(ctx, o, by(helm))
		if apierrors.IsAlreadyExists(err) && (o.Name == "default" || o.Name == "kube-system") {
			return nil // the API server makes them
		}
		return err
	case *corev1.Node:
		created, err := client.CoreV1().Nodes().Create(ctx, o, by(kubelet))
		if err != nil {
			return err
		}
		created.Status = o.Status
		_, err = client.CoreV1().Nodes().UpdateStatus(ctx, created, status)
		return err
	case *corev1.Service:
		if o.Namespace == "default" && o.Name == "kubernetes" {
			return nil // the API server's own
		}
		_, err := client.CoreV1().Services(o.Namespace).Create(ctx, o, by(helm))
		return err
	case *discoveryv1.EndpointSlice:
		_, err := client.DiscoveryV1().EndpointSlices(o.Namespace).Create(ctx, o, by(controllers))
		return err
	case *corev1.ConfigMap:
		_, err := client.CoreV1().ConfigMaps(o.Namespace).Create(ctx, o, by(helm))
		return err
	case *corev1.Pod:
		pods := client.CoreV1().Pods(o.Namespace)
		created, err := pods.Create(ctx, o, by(controllers))
		if err != nil {
			return err
		}
		class := created.Status.QOSClass // the server's, and fixed
		created.Status = o.Status
		created.Status.QOSClass = class
		_, err = pods.UpdateStatus(ctx, created, status)
		return err
	}
	return fmt.Errorf("no way to write a %T", object)
}
