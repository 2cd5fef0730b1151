// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/internal/pgserver"
)

// dataset is where the files of a data set are.
type dataset struct {
	name, dump      string
	blocks          []string
	expected, heads string
}

// loaded is a data set in a database and a folder of its own.
type loaded struct {
	name     string
	server   *pgserver.Server
	scratch  string
	url      string // of the database
	blocks   string // directory
	expected expected
	heads    []byte // all lines of all heads
}

// expected is what lakeFS reads.
type expected struct {
	Repositories []*repository `json:"repositories"`
}

type repository struct {
	ID            string            `json:"id"`
	Namespace     string            `json:"storage_namespace"`
	DefaultBranch string            `json:"default_branch"`
	CreationDate  time.Time         `json:"creation_date"`
	Names         map[string]string `json:"names"` // IDs of commits by label
	Branches      []struct {
		ID          string `json:"id"`
		Commit      string `json:"commit_id"`
		Uncommitted []struct {
			Path     string `json:"path"`
			Type     string `json:"type"`
			Identity string `json:"identity"`
		} `json:"uncommitted"`
		ListCount int    `json:"list_with_staging_count"`
		ListHash  string `json:"list_with_staging_sha256"`
	} `json:"branches"`
	Tags []struct {
		ID     string `json:"id"`
		Commit string `json:"commit_id"`
	} `json:"tags"`
	Commits    []commit `json:"commits"`
	MergeBases []struct {
		A    string `json:"a"`
		B    string `json:"b"`
		Base string `json:"base"`
	} `json:"merge_bases"`
	Diffs []struct {
		Left    string `json:"left"`
		Right   string `json:"right"`
		Added   int    `json:"added"`
		Removed int    `json:"removed"`
		Changed int    `json:"changed"`
		Hash    string `json:"sha256"`
	} `json:"diffs"`
}

type commit struct {
	ID           string            `json:"id"`
	Message      string            `json:"message"`
	Committer    string            `json:"committer"`
	CreationDate time.Time         `json:"creation_date"`
	Parents      []string          `json:"parents"`
	Metadata     map[string]string `json:"metadata"`
	Version      int               `json:"version"`
	Generation   int64             `json:"generation"`
	Metarange    string            `json:"metarange_id"`
	Count        int               `json:"entries_count"`
	EntriesHash  string            `json:"entries_sha256"`
	ValuesHash   string            `json:"values_sha256"`
}

// load makes a database of the dump and a folder of the range files.
func (d dataset) load(ctx context.Context, server *pgserver.Server, scratch string) (*loaded, error) {
	s := &loaded{name: d.name, server: server, scratch: scratch, blocks: filepath.Join(scratch, "blocks")}
	if err := os.MkdirAll(s.blocks, 0o755); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(d.expected)
	if err == nil {
		err = json.Unmarshal(text, &s.expected)
	}
	if err != nil {
		return nil, err
	}
	for _, archive := range d.blocks {
		if _, err := output(ctx, nil, "tar", "-xJf", archive, "-C", s.blocks); err != nil {
			return nil, err
		}
	}
	if s.heads, err = output(ctx, nil, "xz", "-dc", d.heads); err != nil {
		return nil, err
	}
	s.url, err = newDatabase(ctx, server, "source_"+d.name)
	if err != nil {
		return nil, err
	}
	dump, err := unzip(d.dump)
	if err != nil {
		return nil, err
	}
	_, err = output(ctx, dump, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", s.url)
	return s, err
}

func newDatabase(ctx context.Context, server *pgserver.Server, name string) (url string, err error) {
	return server.URL(name), within(ctx, server.URL("postgres"), func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+name)
		return err
	})
}

// within calls do with a connection.
func within(ctx context.Context, url string, do func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}

func unzip(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	r, err := gzip.NewReader(f)
	if err == nil {
		_, err = text.ReadFrom(r)
	}
	return text.Bytes(), errors.Join(err, f.Close())
}

// output runs a program.
func output(ctx context.Context, input []byte, name string, arguments ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, arguments...)
	var said bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(input), &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, said.Bytes())
	}
	return out, nil
}
