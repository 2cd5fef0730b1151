// SPDX-License-Identifier: Apache-2.0

//go:build !race

package dailyrun_test

// raceDetector is off.
const raceDetector = false
