// Command oracle asks the plugins of the kube-scheduler's default profile where the pods of a world can run.
//
// It reads one request a line from its standard input and writes one answer a line to its standard output, both JSON,
// in the same order. A world is a list of Kubernetes objects by kind. The plugins run as a library: no API server, no
// watch. A request that cannot be read is answered with an error, and the next line is read.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"
)

const kubernetes = "k8s.io/kubernetes"

// request is a world and the questions about it. Pods are named "namespace/name"; "*" means all nodes. With profile the
// answer lists the plugins that can refuse a node.
type request struct {
	World    world             `json:"world"`
	Verdicts [][2]string       `json:"verdicts"`
	Queue    []string          `json:"queue"`
	Bind     map[string]string `json:"bind"`
	Profile  bool              `json:"profile"`
}

type answer struct {
	ID       json.RawMessage `json:"id"`
	Version  string          `json:"version"`
	Verdicts []verdict       `json:"verdicts,omitempty"`
	Queue    []binding       `json:"queue,omitempty"`
	Profile  []string        `json:"profile,omitempty"`
	Error    string          `json:"error"`
}

// refusal is the plugin that refuses a node and its message.
type refusal struct {
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
}

type verdict struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
	Fits bool   `json:"fits"`
	refusal
}

// binding has an empty node when the pod stays unbound.
type binding struct {
	Pod      string             `json:"pod"`
	Node     string             `json:"node"`
	Refusals map[string]refusal `json:"refusals,omitempty"`
}

func main() {
	klog.SetLogger(logr.Discard())
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	plugins, err := newProfile()
	if err != nil {
		return err
	}
	version := kubernetesVersion()
	lines, answers := bufio.NewReaderSize(in, 1<<20), bufio.NewWriter(out)
	encoder := json.NewEncoder(answers)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			found := reply(plugins, line)
			found.Version = version
			if err := encoder.Encode(found); err != nil {
				return err
			}
			if err := answers.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func reply(plugins *profile, line []byte) (found answer) {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	fail := func(err error) answer { return answer{ID: head.ID, Error: err.Error()} }
	defer func() {
		if panicked := recover(); panicked != nil {
			found = fail(fmt.Errorf("panic: %v at %s", panicked, debug.Stack()))
		}
	}()
	if err := json.Unmarshal(line, &head); err != nil {
		return fail(fmt.Errorf("reading the request: %w", err))
	}
	var asked request
	if err := kjson.UnmarshalCaseSensitivePreserveInts(line, &asked); err != nil {
		return fail(fmt.Errorf("reading the request: %w", err))
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger(logr.Discard())))
	defer cancel()
	judge, err := newJudge(ctx, plugins, &asked.World)
	if err != nil {
		return fail(err)
	}
	defer judge.close()
	// The verdicts come first: they are about the world as it is given.
	found.ID = head.ID
	if asked.Profile {
		found.Profile = judge.refusing()
	}
	if found.Verdicts, err = judge.verdicts(asked.Verdicts); err != nil {
		return fail(err)
	}
	if found.Queue, err = judge.queue(asked.Queue, asked.Bind); err != nil {
		return fail(err)
	}
	return found
}

// kubernetesVersion is that of the module that the plugins come from.
func kubernetesVersion() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == kubernetes {
				return module.Version
			}
		}
	}
	return "unknown"
}
