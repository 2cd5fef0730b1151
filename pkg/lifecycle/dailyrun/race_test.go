// SPDX-License-Identifier: Apache-2.0

//go:build race

package dailyrun_test

// raceDetector: the tests run several times slower, and `make test` runs the long ones without it too.
const raceDetector = true
