package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// verdict is what is said about one world: what came of it each time, or why it could not be scheduled.
type verdict struct {
	Runs  []*outcome `json:"runs"`
	Error string     `json:"error,omitzero"`
}

// answerWorlds reads a world per line and writes a verdict per line, at once, so that whoever asks may wait for it
// before the next question. Karpenter walks maps, so one world can have several answers: each is scheduled some times.
func answerWorlds(ctx context.Context, in io.Reader, out io.Writer, times int) error {
	reader, writer := bufio.NewReader(in), json.NewEncoder(out)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := writer.Encode(answerWorld(ctx, line, times)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func answerWorld(ctx context.Context, content []byte, times int) (said verdict) {
	defer func() {
		if fault := recover(); fault != nil {
			said = verdict{Error: fmt.Sprintf("panic: %v", fault)}
		}
	}()
	for range times {
		found, err := scheduleWorld(ctx, content)
		if err != nil {
			return verdict{Error: err.Error()}
		}
		said.Runs = append(said.Runs, found)
	}
	return said
}
