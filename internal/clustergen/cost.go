package clustergen

import "time"

// Cost is what one run of a program took, as command benchproc prints it.
type Cost struct {
	// Status is the exit code.
	Status int `json:"status"`
	// Wall and CPU are in nanoseconds; CPU is that of user and system.
	Wall time.Duration `json:"wall"`
	CPU  time.Duration `json:"cpu"`
	// Peak is the largest resident set, in bytes; 0 where it is not known.
	Peak int64 `json:"peak"`
}
