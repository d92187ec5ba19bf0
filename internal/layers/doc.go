// Package layers holds no code: its test enforces the directions in which the packages of this module may import one
// another, and that the pure layers stay pure. CONTRIBUTING.md explains the layers.
package layers
