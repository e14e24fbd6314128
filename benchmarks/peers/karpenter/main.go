// Command karpenter-peer lets Karpenter's own scheduler decide about the inputs of our benchmarks and tests, so that
// figures and answers can be compared on one machine in one run. It prints one JSON object.
//
//	karpenter-peer --workload mixed.json --catalogue catalogue.json [--capacity-type spot] [--limit 60] [--claims]
//	karpenter-peer --world world.json
//	karpenter-peer --worlds --times 3 < worlds.jsonl
//
// A workload meets an empty cluster with one NodePool; a world (see world.go) brings everything itself. With --worlds
// (see stream.go) it reads a world per line, and prints a line about each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

type arguments struct {
	workload, catalogue, world, capacityType string
	limit                                    float64
	claims, worlds                           bool
	times                                    int
}

func main() {
	var chosen arguments
	flag.StringVar(&chosen.workload, "workload", "", "pods as JSON, for an empty cluster with one NodePool")
	flag.StringVar(&chosen.catalogue, "catalogue", "", "instance types as JSON, for --workload")
	flag.StringVar(&chosen.world, "world", "", "a whole cluster as JSON, instead of --workload")
	flag.StringVar(&chosen.capacityType, "capacity-type", "", "buy only on-demand or spot (default: both)")
	flag.Float64Var(&chosen.limit, "limit", 600, "seconds after which the scheduler of a workload must stop")
	flag.BoolVar(&chosen.claims, "claims", false, "tell the claims and the pods' errors of a workload")
	flag.BoolVar(&chosen.worlds, "worlds", false, "read worlds from the standard input, one a line")
	flag.IntVar(&chosen.times, "times", 1, "how often each world of --worlds is scheduled")
	flag.Parse()
	if err := run(chosen); err != nil {
		fmt.Fprintln(os.Stderr, "karpenter-peer:", err)
		os.Exit(1)
	}
}

func run(chosen arguments) error {
	log.SetLogger(logr.Discard()) // what happens to each pod is in the answer; writing it down would cost time too
	ctx := context.Background()
	useAWSVocabulary()
	var found *outcome
	var err error
	switch {
	case chosen.worlds:
		return answerWorlds(ctx, os.Stdin, os.Stdout, chosen.times)
	case chosen.world != "":
		found, err = runWorld(ctx, chosen.world)
	case chosen.workload != "" && chosen.catalogue != "":
		found, err = runWorkload(ctx, chosen)
	default:
		err = errors.New("needs --workload and --catalogue, --world, or --worlds")
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// withSettings puts Karpenter's options into the context as its own flags default them, but for those that are given.
// The CPU request, from which it derives the number of its workers, is that of this machine.
func withSettings(ctx context.Context, given ...string) (context.Context, error) {
	settings := &options.Options{}
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	settings.AddFlags(flags)
	given = append(given, fmt.Sprintf("--cpu-requests=%d", 1000*runtime.GOMAXPROCS(0)))
	if err := settings.Parse(flags, given...); err != nil {
		return nil, err
	}
	return injection.WithControllerName(options.ToContext(ctx, settings), "provisioner"), nil
}

// runWorkload measures the building of the scheduler and its Solve, as its provisioner calls them. The pods are handed
// over and not listed, because listing from a client in memory says nothing about the real one.
func runWorkload(ctx context.Context, chosen arguments) (*outcome, error) {
	began := time.Now()
	ctx, err := withSettings(ctx)
	if err != nil {
		return nil, err
	}
	w, err := readWorkload(chosen.workload, chosen.catalogue, chosen.capacityType)
	if err != nil {
		return nil, err
	}
	pods := w.pending()
	w.Pods = nil // pods without a node are of no use to whoever lists pods in the meantime
	loaded, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	runtime.GC() // what reading leaves behind is not the scheduler's to clean up
	watch, found := startWatch(), &outcome{ParseSeconds: rounded(time.Since(began))}
	limited, cancel := context.WithTimeout(ctx, time.Duration(chosen.limit*float64(time.Second)))
	defer cancel()
	scheduler, err := loaded.provisioner.NewScheduler(limited, pods, nil, sets.New[types.UID](), schedulerOptions(ctx)...)
	if err != nil {
		return nil, err
	}
	results, err := scheduler.Solve(limited, pods)
	found.stop(watch)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	found.TimedOut = err != nil
	found.summarise(results, pods)
	if chosen.claims {
		found.tell(results)
	}
	return found, nil
}

// readWorkload makes the world of a benchmark: nothing but pending pods and one NodePool without limits.
func readWorkload(workload, catalogue, capacityType string) (*world, error) {
	var input struct {
		Pods []struct {
			Count    int        `json:"count"`
			Template corev1.Pod `json:"template"`
		} `json:"pods"`
	}
	w := &world{NodePools: []*v1.NodePool{benchmarkPool(capacityType)}}
	if err := readJSON(workload, &input); err != nil {
		return nil, err
	}
	if err := readJSON(catalogue, &w.InstanceTypes); err != nil {
		return nil, err
	}
	for _, row := range input.Pods {
		for i := range row.Count {
			pod := row.Template.DeepCopy()
			if row.Count > 1 {
				pod.Name = fmt.Sprintf("%s-%d", pod.Name, i)
			}
			w.Pods = append(w.Pods, pod)
		}
	}
	w.complete()
	return w, nil
}

func benchmarkPool(capacityType string) *v1.NodePool {
	bought := []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot}
	if capacityType != "" {
		bought = []string{capacityType}
	}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: bought},
	}
	return pool
}

// schedulerOptions are those that the provisioner gives its scheduler.
func schedulerOptions(ctx context.Context) []scheduling.Options {
	settings := options.FromContext(ctx)
	return []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(runtime.GOMAXPROCS(0)),
		scheduling.MinValuesPolicy(settings.MinValuesPolicy),
	}
}

// runWorld asks the whole provisioner: which pods are pending, valid, or on nodes that go, is part of the answer.
func runWorld(ctx context.Context, path string) (*outcome, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found, err := scheduleWorld(ctx, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

func scheduleWorld(ctx context.Context, content []byte) (*outcome, error) {
	began := time.Now()
	w, err := parseWorld(content)
	if err != nil {
		return nil, err
	}
	ctx, err = withSettings(ctx, w.Settings.flags()...)
	if err != nil {
		return nil, err
	}
	loaded, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	watch, found := startWatch(), &outcome{ParseSeconds: rounded(time.Since(began))}
	results, err := loaded.provisioner.Schedule(ctx)
	if err != nil {
		return nil, err
	}
	found.stop(watch)
	found.summarise(results, w.pending())
	found.tell(results)
	found.explain(w.pending(), func(pod *corev1.Pod) error { return loaded.provisioner.Validate(ctx, pod) })
	return found, nil
}
