// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) uploads() *cobra.Command {
	g := group("uploads", "List or abort multipart uploads", a.uploadsList(), a.uploadsAbort())
	g.Long = "List or abort multipart uploads, which programs begin and complete. Without a branch they are those of the default branch."
	return g
}

// parseUploads reads REPO[/REF]:KEY, where the key, or prefix of keys, may be empty.
func parseUploads(arg, form string) (address, error) {
	place, key, ok := strings.Cut(arg, ":")
	if !ok {
		return address{}, malformed(arg, form, "lake:data/")
	}
	if strings.Contains(place, "/") {
		return parseKeys(arg, form, "lake/main:data/")
	}
	repo, err := parseRepo(place)
	return address{repo: repo, key: graveler.Key(key)}, err
}

func (a *app) uploadsList() *cobra.Command {
	var limit uint
	cmd := &cobra.Command{
		Use: "list REPO[/REF]:PREFIX", Short: "List the uploads that are neither completed nor aborted",
		Long:    "List the uploads whose keys start with PREFIX, which may be empty, by key and by the time of their initiation.",
		Example: "moraine uploads list lake:\nmoraine uploads list lake/main:data/",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseUploads(args[0], "REPO[/REF]:PREFIX")
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), reading, at, func(c *catalog.Catalog) error {
				all := allUploads(cmd.Context(), c, at.bucket(), string(at.key))
				return table(a.printer, limited(all, int(limit)), []string{"INITIATED", "UPLOAD", "KEY"}, viewUpload,
					func(u catalog.Upload) []string { return []string{formatTime(u.Initiated), u.UploadID, escape(u.Key)} })
			})
		},
	}
	cmd.Flags().UintVar(&limit, "limit", 0, "end after so many lines (0: no limit)")
	return cmd
}

func allUploads(ctx context.Context, c *catalog.Catalog, b catalog.Bucket, prefix string) iter.Seq2[catalog.Upload, error] {
	return func(yield func(catalog.Upload, error) bool) {
		for p := (catalog.ListUploadsParams{Prefix: prefix}); ; {
			page, err := c.ListUploads(ctx, b, p)
			if err != nil {
				yield(catalog.Upload{}, err)
				return
			}
			for _, u := range page.Uploads {
				if !yield(u, nil) {
					return
				}
			}
			if !page.Truncated {
				return
			}
			p.KeyMarker, p.UploadIDMarker = page.NextKeyMarker, page.NextUploadIDMarker
		}
	}
}

func viewUpload(u catalog.Upload) any {
	return struct {
		keyView
		UploadID     string            `json:"upload_id"`
		Initiated    time.Time         `json:"initiated"`
		ContentType  string            `json:"content_type,omitempty"`
		Metadata     map[string]string `json:"metadata,omitempty"`
		Tags         map[string]string `json:"tags,omitempty"`
		StorageClass string            `json:"storage_class,omitempty"`
	}{viewKey(graveler.Key(u.Key)), u.UploadID, u.Initiated, u.Object.ContentType, u.Object.Metadata, u.Object.Tags, u.Object.StorageClass}
}

func (a *app) uploadsAbort() *cobra.Command {
	return &cobra.Command{
		Use: "abort REPO[/BRANCH]:KEY UPLOAD", Short: "End an upload, and list its parts, whose bytes nobody needs any more",
		Example: "moraine uploads abort lake:data/x.csv 187c3a7e5f0a11c2d94b0e6f",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseUploads(args[0], "REPO[/BRANCH]:KEY")
			if err == nil {
				err = graveler.ValidateKey(at.key)
			}
			if err == nil && at.ref != "" {
				err = graveler.ValidateBranchID(at.branch())
			}
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), writing, at, func(c *catalog.Catalog) error {
				parts, err := c.AbortUpload(cmd.Context(), at.bucket(), string(at.key), args[1])
				return a.printParts(parts, err)
			})
		},
	}
}

// printParts lists parts that were removed, also where something went wrong after that.
func (a *app) printParts(parts []catalog.Part, failed error) error {
	err := table(a.printer, values(parts), []string{"PART", "SIZE", "ADDRESS"}, viewPart,
		func(p catalog.Part) []string {
			return []string{strconv.Itoa(p.Number), formatSize(p.Size), orDash(escape(p.PhysicalAddress))}
		})
	if failed != nil && len(parts) > 0 {
		failed = fmt.Errorf("%w: the parts that are listed were removed before that", failed)
	}
	if failed != nil {
		return failed
	}
	return err
}

func viewPart(p catalog.Part) any {
	return struct {
		Part            int       `json:"part"`
		PhysicalAddress string    `json:"physical_address,omitempty"`
		Size            int64     `json:"size"`
		Checksum        string    `json:"checksum,omitempty"`
		ModifiedAt      time.Time `json:"modified_at,omitzero"`
	}{p.Number, p.PhysicalAddress, p.Size, p.Checksum, p.ModifiedAt}
}

// values yields what is there already.
func values[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v := range slices.Values(items) {
			if !yield(v, nil) {
				return
			}
		}
	}
}
