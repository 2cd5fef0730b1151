// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moraine-store/moraine/benchmarks/result"
)

const (
	memoryPeriod = 50 * time.Millisecond
	// keptSamples is how many samples are kept at most; when there are more, every other one goes.
	keptSamples = 200
)

// Memory samples the anonymous memory of this process, until it is stopped. Where the system does not tell (only Linux does) there are no samples.
type Memory struct {
	start  time.Time
	stop   chan struct{}
	ended  chan struct{}
	mu     sync.Mutex
	all    result.Memory
	peak   int64 // since Mark
	every  int   // of how many samples one is kept
	passed int
}

// SampleMemory starts to sample.
func SampleMemory() *Memory {
	m := &Memory{start: time.Now(), stop: make(chan struct{}), ended: make(chan struct{}), every: 1}
	go m.run()
	return m
}

func (m *Memory) run() {
	defer close(m.ended)
	ticker := time.NewTicker(memoryPeriod)
	defer ticker.Stop()
	for {
		m.take()
		select {
		case <-m.stop:
			return
		case <-ticker.C:
		}
	}
}

func (m *Memory) take() {
	bytes, ok := anonymousMemory()
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.PeakBytes, m.peak = max(m.all.PeakBytes, bytes), max(m.peak, bytes)
	if m.passed++; m.passed%m.every != 0 {
		return
	}
	m.all.Samples = append(m.all.Samples, result.MemorySample{At: time.Since(m.start).Seconds(), Bytes: bytes})
	if len(m.all.Samples) > keptSamples {
		for i := range keptSamples / 2 {
			m.all.Samples[i] = m.all.Samples[2*i]
		}
		m.all.Samples = m.all.Samples[:keptSamples/2]
		m.every *= 2
	}
}

// Mark begins anew with the peak that Peak returns, after giving back to the system what is free.
func (m *Memory) Mark() {
	debug.FreeOSMemory()
	m.mu.Lock()
	m.peak = 0
	m.mu.Unlock()
	m.take()
}

// Peak returns the largest sample since Mark, 0 where there is none.
func (m *Memory) Peak() int64 {
	m.take()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak
}

// Stop ends the sampling and returns what was sampled.
func (m *Memory) Stop() result.Memory {
	close(m.stop)
	<-m.ended
	return m.all
}

// anonymousMemory reads what Linux calls RssAnon: resident pages that are of no file.
func anonymousMemory() (bytes int64, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	kib, ok := field(string(status), "RssAnon:")
	n, err := strconv.ParseInt(strings.TrimSuffix(kib, " kB"), 10, 64)
	return n << 10, ok && err == nil
}

// field returns what follows a name at the beginning of a line.
func field(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}
