// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	metrics "github.com/moraine-store/moraine/pkg/lifecycle/dailyrun/prometheus"
)

// serving calls fn with the observer whose metrics are served at an address meanwhile, or with none where that is "".
func (a *app) serving(address string, fn func(dailyrun.Observer) error) (err error) {
	if address == "" {
		return fn(nil)
	}
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listenAddress(address))
	if err != nil {
		return fmt.Errorf("--metrics-listen %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		closing := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			closing = errors.Join(ended, closing)
		}
		err = errors.Join(err, closing)
	}()
	a.note("metrics are at http://%s/metrics", listener.Addr())
	return fn(m)
}

// listenAddress puts this machine alone where no host is given.
func listenAddress(address string) string {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	return address
}
