// SPDX-License-Identifier: Apache-2.0

package migrate

// CheckpointEvery makes checkpoints frequent, so that small data have some.
func (m *Migration) CheckpointEvery(items uint64) { m.checkpoint = items }
