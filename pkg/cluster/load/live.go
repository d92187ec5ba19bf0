package load

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// Live reads a cluster through its API server.
//
// What the credentials may not read is recorded in Snapshot.Absent with the reason. Errors: ErrUnauthorized, a server that
// cannot be reached, a context that ended, or a cluster of which nothing could be read.
func Live(ctx context.Context, config *rest.Config, o Options) (*Result, error) {
	return nil, errors.ErrUnsupported
}
