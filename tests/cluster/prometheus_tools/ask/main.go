// Command ask puts PromQL expressions to Prometheus' own engine, over scrapes that were kept as files.
//
// It reads one JSON document from its standard input: the scrapes, each a file in the text format with the time at which
// it was taken and the labels that Prometheus would add, and the questions, each an expression. It writes one JSON
// document: of each question whether it can be parsed, which metrics it names, and what the answer is over the whole
// time, a point for each scrape. The storage is Prometheus' own too, in a folder that is removed at the end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	textFormat  = "text/plain; version=0.0.4"
	mostSamples = 50_000_000
	patience    = time.Minute
	// As Prometheus has it when nothing is set.
	lookback = 5 * time.Minute
)

type scrape struct {
	File   string            `json:"file"`
	Millis int64             `json:"millis"`
	Labels map[string]string `json:"labels"`
}

type asked struct {
	Scrapes     []scrape `json:"scrapes"`
	StepMillis  int64    `json:"step_millis"`
	Expressions []string `json:"expressions"`
}

// answer says of an expression what came of it. Series have the labels of the result, and its last number: as text, for
// JSON has no NaN.
type answer struct {
	Error   string   `json:"error"`
	Metrics []string `json:"metrics"`
	Series  []series `json:"series"`
}

type series struct {
	Labels map[string]string `json:"labels"`
	Points int               `json:"points"`
	Last   string            `json:"last"`
}

// told has the names of all metrics in the scrapes, those included that are declared and have no series.
type told struct {
	Metrics []string `json:"metrics"`
	Answers []answer `json:"answers"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var question asked
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&question); err != nil {
		return fmt.Errorf("reading what is asked: %w", err)
	}
	if len(question.Scrapes) == 0 || question.StepMillis <= 0 {
		return errors.New("there has to be a scrape, and a step")
	}
	folder, err := os.MkdirTemp("", "kerf-ask-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	database, err := open(folder)
	if err != nil {
		return err
	}
	defer database.Close()
	first, last, names, err := load(database, question.Scrapes)
	if err != nil {
		return err
	}
	found := told{Metrics: names}
	engine, reader := newEngine()
	step := time.Duration(question.StepMillis) * time.Millisecond
	// So that the last scrape is asked about as well.
	first = last.Add(-last.Sub(first) / step * step)
	for _, expression := range question.Expressions {
		found.Answers = append(found.Answers, ask(engine, reader, database, expression, first, last, step))
	}
	return json.NewEncoder(out).Encode(found)
}

func open(folder string) (*tsdb.DB, error) {
	options := tsdb.DefaultOptions()
	options.RetentionDuration = 0
	return tsdb.Open(folder, nil, nil, options, tsdb.NewDBStats())
}

// load puts the scrapes in, in the order of their times, and returns the first time, the last one, and all names.
func load(database *tsdb.DB, scrapes []scrape) (time.Time, time.Time, []string, error) {
	slices.SortStableFunc(scrapes, func(a, b scrape) int { return int(a.Millis - b.Millis) })
	names, targets := map[string]bool{}, map[string]present{}
	for _, one := range scrapes {
		target := labels.FromMap(one.Labels).String()
		found, err := put(database, one, targets[target], names)
		targets[target] = found
		if err != nil {
			return time.Time{}, time.Time{}, nil, fmt.Errorf("%s: %w", one.File, err)
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return time.UnixMilli(scrapes[0].Millis), time.UnixMilli(scrapes[len(scrapes)-1].Millis), sorted, nil
}

// present holds the series that a scrape had, by their text.
type present map[string]labels.Labels

// put adds a scrape, and marks those series as gone that the target had before and has no more, as Prometheus does.
func put(database *tsdb.DB, one scrape, before present, names map[string]bool) (present, error) {
	text, err := os.ReadFile(one.File)
	if err != nil {
		return nil, err
	}
	lines, err := textparse.New(text, textFormat, nil, textparse.ParserOptions{})
	if err != nil {
		return nil, err
	}
	appender := database.Appender(context.Background())
	found, err := putAll(appender, lines, one, names)
	if err != nil {
		return nil, errors.Join(err, appender.Rollback())
	}
	for key, series := range before {
		if _, there := found[key]; !there {
			if _, err := appender.Append(0, series, one.Millis, math.Float64frombits(value.StaleNaN)); err != nil {
				return nil, errors.Join(err, appender.Rollback())
			}
		}
	}
	return found, appender.Commit()
}

func putAll(
	appender storage.Appender, lines textparse.Parser, one scrape, names map[string]bool,
) (present, error) {
	found := present{}
	add := func(series labels.Labels, number float64) error {
		names[series.Get(labels.MetricName)] = true
		found[series.String()] = series
		_, err := appender.Append(0, series, one.Millis, number)
		return err
	}
	up := labels.NewBuilder(labels.FromMap(one.Labels)).Set(labels.MetricName, "up").Labels()
	if err := add(up, 1); err != nil {
		return nil, err
	}
	for {
		entry, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if entry == textparse.EntryType {
			// Declared, be there a series or not. What a histogram or a summary is made of is declared with it.
			name, kind := lines.Type()
			declare(string(name), kind, names)
			continue
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var own labels.Labels
		lines.Labels(&own)
		_, _, number := lines.Series()
		if err := add(target(own, one.Labels), number); err != nil {
			return nil, fmt.Errorf("%s: %w", own, err)
		}
	}
}

func declare(name string, kind model.MetricType, names map[string]bool) {
	names[name] = true
	switch kind {
	case model.MetricTypeHistogram:
		names[name+"_bucket"], names[name+"_sum"], names[name+"_count"] = true, true, true
	case model.MetricTypeSummary:
		names[name+"_sum"], names[name+"_count"] = true, true
	}
}

// target adds the labels of the target. A label of that name that the series has itself is kept as exported_<name>.
func target(own labels.Labels, added map[string]string) labels.Labels {
	builder := labels.NewBuilder(own)
	for name, text := range added {
		if exported := own.Get(name); exported != "" {
			builder.Set("exported_"+name, exported)
		}
		builder.Set(name, text)
	}
	return builder.Labels()
}

func newEngine() (*promql.Engine, parser.Parser) {
	reader := parser.NewParser(parser.Options{})
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples:               mostSamples,
		Timeout:                  patience,
		LookbackDelta:            lookback,
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		Parser:                   reader,
	}), reader
}

func ask(
	engine *promql.Engine, reader parser.Parser, database *tsdb.DB, expression string,
	first, last time.Time, step time.Duration,
) answer {
	tree, err := reader.ParseExpr(expression)
	if err != nil {
		return answer{Error: err.Error()}
	}
	found := answer{Metrics: named(tree)}
	query, err := engine.NewRangeQuery(context.Background(), database, nil, expression, first, last, step)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		found.Error = result.Err.Error()
		return found
	}
	matrix, err := result.Matrix()
	if err != nil {
		found.Error = err.Error()
		return found
	}
	for _, one := range matrix {
		found.Series = append(found.Series, summed(one))
	}
	return found
}

// summed leaves out what is not a number: a panel shows nothing of it either.
func summed(one promql.Series) series {
	found := series{Labels: one.Metric.Map(), Last: "NaN"}
	for _, point := range one.Floats {
		if !math.IsNaN(point.F) {
			found.Points++
			found.Last = fmt.Sprint(point.F)
		}
	}
	return found
}

// named returns the metrics that an expression selects. One that does not say which is told as "".
func named(tree parser.Expr) []string {
	names := map[string]bool{}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names[selector.Name] = true
		}
		return nil
	})
	found := make([]string, 0, len(names))
	for name := range names {
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}
