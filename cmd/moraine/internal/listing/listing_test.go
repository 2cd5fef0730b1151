// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func readAll(text string, o Options) (items []Item, r *Reader, err error) {
	r, err = NewReader(strings.NewReader(text), o)
	for err == nil {
		var item Item
		if item, err = r.Next(); err == nil {
			items = append(items, item)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return items, r, err
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 500_000_000, time.UTC)

func TestJSONL(t *testing.T) {
	items, _, err := readAll(`{"key":"a","address":"s3://b/a","size":3,"checksum":"md5:0","modified_at":"2026-01-31T12:00:00.5Z","content_type":"text/csv","storage_class":"COLD","metadata":{"k":"v","é":""},"tags":{"t":"1"}}
 { "key" : "\u00e9\ud83d\ude00\n", "etag":null, "physical_address":"", "mtime":"2026-01-31T13:00:00.5+01:00", "metadata":{}, "tags":null }
{"key":"b�","key_base64":"Yv8=","last_modified":"2026-01-31T12:00:00.5Z","size":0}`, Options{Format: JSONL})
	require.NoError(t, err)
	require.Equal(t, []Item{
		{1, []byte("a"), catalog.Object{
			PhysicalAddress: "s3://b/a", Size: 3, Checksum: "md5:0", ModifiedAt: noon, ContentType: "text/csv", StorageClass: "COLD",
			Metadata: map[string]string{"k": "v", "é": ""}, Tags: map[string]string{"t": "1"},
		}},
		{2, []byte("é😀\n"), catalog.Object{ModifiedAt: noon.In(items[1].Object.ModifiedAt.Location())}},
		{3, []byte("b\xff"), catalog.Object{ModifiedAt: noon}},
	}, items)
}

func TestCSV(t *testing.T) {
	items, _, err := readAll("\ufeffkey,size,tags.t,\"metadata.a.\"\"b\"\"\",mtime,key_base64\r\n"+
		"a,3,1,v,2026-01-31T12:00:00.5Z,\r\n"+
		"\"a,\"\"b\"\"\",,,,,\n"+
		"b\xff,0,,,,Yv8AYQ==", Options{Format: CSV})
	require.NoError(t, err)
	require.Equal(t, []Item{
		{2, []byte("a"), catalog.Object{Size: 3, ModifiedAt: noon, Metadata: map[string]string{`a."b"`: "v"}, Tags: map[string]string{"t": "1"}}},
		{3, []byte(`a,"b"`), catalog.Object{}},
		{4, []byte("b\xff\x00a"), catalog.Object{}},
	}, items)
}

const versioned = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag, StorageClass, IsMultipartUploaded, -"

func TestS3Inventory(t *testing.T) {
	tag := strings.Repeat("0a", 16)
	items, r, err := readAll(`"lake","a+b%2Bc/%C3%A9.csv","","true","false","3","2026-01-31T12:00:00.500Z","`+tag+`","STANDARD","false","x"
"lake","a","v2","true","true","","2026-01-31T12:00:00.500Z","","","",""
"lake","a","v1","false","false","3","2026-01-31T12:00:00.500Z","`+tag+`","STANDARD","false","x"
"lake","a","v0","false","true","","2026-01-31T12:00:00.500Z","","","",""
"lake","z","v1","true","false","0","2026-01-31T12:00:00.500Z","`+tag+`-17","GLACIER","true","x"
`, Options{Format: S3Inventory, Schema: versioned})
	require.NoError(t, err)
	require.Equal(t, []Item{
		{1, []byte("a b+c/é.csv"), catalog.Object{PhysicalAddress: "s3://lake/a b+c/é.csv", Size: 3, ModifiedAt: noon, Checksum: tag, StorageClass: "STANDARD"}},
		{5, []byte("z"), catalog.Object{PhysicalAddress: "s3://lake/z", ModifiedAt: noon, Checksum: tag + "-17", StorageClass: "GLACIER"}},
	}, items)
	require.Equal(t, []int{1, 2}, []int{r.DeleteMarkers, r.Noncurrent})

	items, _, err = readAll(`"lake","a","3","2026-01-31T12:00:00.500Z",""`, Options{Format: S3Inventory})
	require.NoError(t, err)
	require.Equal(t, []Item{{1, []byte("a"), catalog.Object{PhysicalAddress: "s3://lake/a", Size: 3, ModifiedAt: noon}}}, items)
}

func TestBadLinesAreNamed(t *testing.T) {
	for _, c := range []struct {
		format      Format
		text, error string
	}{
		{JSONL, "", ""},
		{JSONL, "\n", "line 1: invalid value: the line is empty"},
		{JSONL, "{\"key\":\"a\"}\n \n{\"key\":\"b\"}", "line 2: invalid value: the line is empty"},
		{JSONL, "key,size", "line 1: invalid value: expected a JSON object"},
		{JSONL, `{"key":"a"`, "line 1: invalid value: the JSON object does not end"},
		{JSONL, `{"key":"a","siz`, "line 1: invalid value: the JSON object does not end"},
		{JSONL, `{"key":"a"} {"key":"b"}`, "line 1: invalid value: there is something behind the JSON object"},
		{JSONL, `{"key":"a"}]`, "line 1: invalid value: invalid character ']'"},
		{JSONL, `["key","a"]`, "line 1: invalid value: expected a JSON object"},
		{JSONL, `{"key":"a","sise":3}`, `line 1: invalid value: unknown field "sise"`},
		{JSONL, `{"Key":"a"}`, `line 1: invalid value: unknown field "Key"`},
		{JSONL, `{"size":1}`, "line 1: invalid value: it has no key"},
		{JSONL, `{"key":null}`, "line 1: invalid value: it has no key"},
		{JSONL, `{"key":7}`, "line 1: invalid value: key: expected a text"},
		{JSONL, `{"key":["a"]}`, "line 1: invalid value: key: expected a text"},
		{JSONL, `{"key":"a","key":"b"}`, "line 1: invalid value: key: it is given twice"},
		{JSONL, `{"key":"a","etag":"x","checksum":"y"}`, "line 1: invalid value: checksum: it is given twice"},
		{JSONL, `{"key":"a","size":"3"}`, "line 1: invalid value: size: expected a number of bytes"},
		{JSONL, `{"key":"a","size":-3}`, `line 1: invalid value: size "-3": expected a number of bytes`},
		{JSONL, `{"key":"a","size":1.5}`, `line 1: invalid value: size "1.5": expected a number of bytes`},
		{JSONL, `{"key":"a","size":9223372036854775808}`, `size "9223372036854775808": expected a number`},
		{JSONL, `{"key":"a","mtime":"yesterday"}`, `line 1: invalid value: mtime "yesterday": expected a time such as`},
		{JSONL, `{"key":"a","mtime":1}`, `line 1: invalid value: mtime: expected a time such as`},
		{JSONL, `{"key_base64":"_"}`, `line 1: invalid value: key_base64 "_": expected base64`},
		{JSONL, `{"key":"a","metadata":"x"}`, "line 1: invalid value: metadata: expected an object of texts"},
		{JSONL, `{"key":"a","metadata":[]}`, "line 1: invalid value: metadata: expected an object of texts"},
		{JSONL, `{"key":"a","metadata":{"k":1}}`, "line 1: invalid value: metadata: expected an object of texts"},
		{JSONL, `{"key":"a","tags":{"k":"1","k":"2"}}`, `line 1: invalid value: "k" is given twice`},
		{JSONL, `{"key":"a","tags":{"k"}}`, "line 1: invalid value: invalid character '}'"},
		{JSONL, "{\"key\":\"a\xff\"}", "line 1: invalid value: it is not Unicode"},
		{JSONL, `{"key":"a\ud800"}`, "line 1: invalid value: it is not Unicode"},
		{JSONL, `{"key":"a\\\udc00\ud800"}`, "line 1: invalid value: it is not Unicode"},
		{JSONL, `{"key":"` + strings.Repeat("a", maxLine) + `"}`, "line 1: too large: more than 1048576 bytes"},

		{CSV, "", "invalid value: the line that names the columns is missing"},
		{CSV, "key,sise\n", `line 1: invalid value: unknown column "sise"`},
		{CSV, "key,\n", `line 1: invalid value: unknown column ""`},
		{CSV, "key,tags\n", `line 1: invalid value: unknown column "tags"`},
		{CSV, "key,tags.\n", `line 1: invalid value: unknown column "tags."`},
		{CSV, "key,size.x\n", `line 1: invalid value: unknown column "size.x"`},
		{CSV, "key,etag,checksum\n", `line 1: invalid value: checksum: it is given twice`},
		{CSV, "key,tags.a,tags.a\n", `line 1: invalid value: "a" is given twice`},
		{CSV, "size\n1\n", "line 1: invalid value: there is no column key or key_base64"},
		{CSV, "key,size\na,1\nb\n", "line 3: invalid value: 1 cells, and the header names 2 columns"},
		{CSV, "key\na\n\n", "line 3: invalid value: it has no key"},
		{CSV, "key,size\na,1,2\n", "line 2: invalid value: 3 cells, and the header names 2 columns"},
		{CSV, "key,size\na,x\n", `line 2: invalid value: size "x": expected a number of bytes`},
		{CSV, "key,size\n\"a\nb\",1\n", "line 2: invalid value: a quoted cell does not end"},
		{CSV, "key,size\na,\"1\"2\n", "line 2: invalid value: cell 2: there is something behind the closing quote"},
		{CSV, "key,size\na\"b,1\n", "line 2: invalid value: cell 1: a quote inside a cell without quotes"},

		{S3Inventory, "b,k,1,2026-01-31T12:00:00Z", "line 1: invalid value: 4 cells, and the schema names 5 columns"},
		{S3Inventory, "b,k,x,2026-01-31T12:00:00Z,", `line 1: invalid value: Size "x": expected a number`},
		{S3Inventory, "b,k,1,2026-01-31,", `line 1: invalid value: LastModifiedDate "2026-01-31": expected a time`},
		{S3Inventory, "b,k,1,2026-01-31T12:00:00Z,STANDARD", `line 1: invalid value: ETag "STANDARD": expected an ETag`},
		{S3Inventory, "b,k%,1,2026-01-31T12:00:00Z,", `line 1: invalid value: Key "k%": expected a URL-encoded key`},
		{S3Inventory, "b,,1,2026-01-31T12:00:00Z,", `line 1: invalid value: Key "": expected a URL-encoded key`},
		{S3Inventory, ",k,1,2026-01-31T12:00:00Z,", `line 1: invalid value: Bucket "": expected a name`},
		{"xml", "", `invalid value: format "xml"`},
	} {
		_, _, err := readAll(c.text, Options{Format: c.format})
		if c.error == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.error, "%s %q", c.format, c.text)
		require.True(t, errors.Is(err, graveler.ErrInvalidValue) || errors.Is(err, graveler.ErrTooLarge))
	}
	_, _, err := readAll(`b,k,v,yes,false,1,2026-01-31T12:00:00Z,,,,`, Options{Format: S3Inventory, Schema: versioned})
	require.ErrorContains(t, err, `line 1: invalid value: IsLatest "yes": expected true or false`)
	_, _, err = readAll(`b,k,v,true,,1,2026-01-31T12:00:00Z,,,,`, Options{Format: S3Inventory, Schema: versioned})
	require.ErrorContains(t, err, `line 1: invalid value: IsDeleteMarker "": expected true or false`)
}

func TestBadSchemas(t *testing.T) {
	for schema, message := range map[string]string{
		"Bucket, Key, Sise":       `schema: unknown column "Sise"`,
		"Bucket, Key, ":           `schema: unknown column ""`,
		"Bucket, Key, Size, Size": "schema: Size is given twice",
		"Key, Size":               "schema: Bucket is missing",
		"Bucket, -, -":            "schema: Key is missing",
		"Bucket,Key,VersionId":    "schema: VersionId without IsLatest",
	} {
		_, err := NewReader(strings.NewReader(""), Options{Format: S3Inventory, Schema: schema})
		require.ErrorContains(t, err, message)
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
	}
}

func zipped(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

// A listing that was cut off or damaged on the way is an error, however much of it can be read.
func TestCompressedListings(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "{\"key\":\"%d\"}\n", i)
	}
	whole := zipped(t, text.String())
	items, _, err := readAll(string(whole), Options{Format: JSONL})
	require.NoError(t, err)
	require.Len(t, items, 1000)
	items, _, err = readAll(string(append(bytes.Clone(whole), whole...)), Options{Format: JSONL}) // as cat does
	require.NoError(t, err)
	require.Len(t, items, 2000)
	for _, length := range []int{2, 5, 12, len(whole) / 2, len(whole) - 9, len(whole) - 1} {
		_, _, err := readAll(string(whole[:length]), Options{Format: JSONL})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-5] ^= 1
	_, _, err = readAll(string(damaged), Options{Format: JSONL})
	require.ErrorIs(t, err, gzip.ErrChecksum)
}

func TestAnErrorOfTheReaderIsAnError(t *testing.T) {
	stop := errors.New("stop")
	for _, before := range []string{"", "{\"key\":\"a\"}\n", "{\"key\":\"a\"}\n{\"key\":\"b\"}"} {
		r, err := NewReader(io.MultiReader(strings.NewReader(before), iotest.ErrReader(stop)), Options{Format: JSONL})
		for err == nil {
			_, err = r.Next()
		}
		require.ErrorIs(t, err, stop)
	}
}

func TestFormatsByName(t *testing.T) {
	for name, want := range map[string]Format{
		"a.jsonl": JSONL, "a.ndjson": JSONL, "dir.csv/a.jsonl.gz": JSONL, "a.csv": CSV, "a.csv.gz": "", "a.json": "", "a": "", "-": "", "": "",
	} {
		format, clear := FormatOf(name)
		require.Equal(t, want != "", clear, name)
		if clear {
			require.Equal(t, want, format, name)
		}
	}
}

// What encoding/csv makes of a line, splitCells makes of it too.
func checkSplit(t *testing.T, line string) {
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return // to encoding/csv these are more or less than one line
	}
	want, wantErr := csv.NewReader(strings.NewReader(line)).Read()
	cells, err := splitCells(line, nil)
	require.Equal(t, wantErr == nil, err == nil, "%q: %v, %v", line, wantErr, err)
	if err == nil {
		require.Equal(t, want, cells)
	}
}

func TestCellsAreWhatOthersMakeOfThem(t *testing.T) {
	for _, line := range []string{`a`, `,`, `a,`, `"",""`, `"a""b",c`, `"a""`, `""""`, `"""`, `a"b`, `"a"b`, ` "a"`, `"a" ,b`, `"a,b",`, `"`} {
		checkSplit(t, line)
	}
}
