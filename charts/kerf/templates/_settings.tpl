{{/* The environment of the controller. */}}

{{/* Variables, and the keys of `settings` whose text is theirs: as it is given, were it false or 0, templates filled in. */}}
{{- define "kerf.variables" -}}
AMI_REFRESH_INTERVAL: amiRefreshInterval
BATCH_IDLE_DURATION: batchIdleDuration
BATCH_LONE_DURATION: batchLoneDuration
BATCH_MAX_DURATION: batchMaxDuration
CANARY_SOAK: canarySoak
CLUSTER_CA_BUNDLE: clusterCABundle
CLUSTER_ENDPOINT: clusterEndpoint
CLUSTER_NAME: clusterName
CONSOLIDATION_MINIMUM_AGE: consolidationMinimumAge
CONSOLIDATION_MINIMUM_SAVING: consolidationMinimumSaving
CONSOLIDATION_PAYBACK_TIME: consolidationPaybackTime
DELETION_GUARD_PERCENT: deletionGuardPercent
DELETION_GUARD_WAIT: deletionGuardWait
DETAILED_METRICS: detailedMetrics
DISABLE_CLUSTER_STATE_OBSERVABILITY: disableClusterStateObservability
DISABLE_DRY_RUN: disableDryRun
EARLY_ORDERS: earlyOrders
EC2_REQUEST_RATE: ec2RequestRate
EKS_CONTROL_PLANE: eksControlPlane
ENABLE_PROFILING: enableProfiling
ENABLE_ZONAL_SHIFT: enableZonalShift
EXPIRE_WITHIN_BUDGETS: expireWithinBudgets
IGNORE_DRA_REQUESTS: ignoreDRARequests
IMPROVE_SECONDS: improveSeconds
INTERRUPTION_QUEUE: interruptionQueue
ISOLATED_VPC: isolatedVPC
KARPENTER_LEASES: karpenterLeases
KUBE_CLIENT_BURST: kubeClientBurst
KUBE_CLIENT_QPS: kubeClientQPS
LEADER_ELECTION_NAME: leaderElectionName
MIN_VALUES_POLICY: minValuesPolicy
NOMINATE_PODS: nominatePods
PLAN_FIRST: planFirst
PREFERENCE_POLICY: preferencePolicy
RECORD_AGE: recordAge
RECORD_ENCRYPTION: recordEncryption
RECORD_FOLDER: recordFolder
RECORD_S3: recordS3
RECORD_SIZE: recordSize
RESERVED_ENIS: reservedENIs
SCHEDULER_CONFIG: schedulerConfig
SUBNET_REFRESH_INTERVAL: subnetRefreshInterval
VM_MEMORY_OVERHEAD_PERCENT: vmMemoryOverheadPercent
{{- end -}}

{{/* What controller.env says of a variable takes the place of what would be there: a list has each name once. */}}
{{- define "kerf.environment" -}}
{{- $given := list }}
{{- range .Values.controller.env }}
{{- $given = append $given .name }}
{{- end }}
{{- $rows := list }}
{{- range fromYamlArray (include "kerf.variableRows" .) }}
{{- if not (has .name $given) }}
{{- $rows = append $rows . }}
{{- end }}
{{- end }}
{{- concat $rows (default list .Values.controller.env) | toYaml }}
{{- end -}}

{{- define "kerf.variableRows" -}}
- name: SYSTEM_NAMESPACE
  valueFrom:
    # A fieldRef has one owner as a whole: without its default, server-side apply by another would conflict.
    fieldRef:
      apiVersion: v1
      fieldPath: metadata.namespace
- {name: LOG_LEVEL, value: {{ tpl (toString .Values.logLevel) . | quote }}}
- {name: LOG_OUTPUT_PATHS, value: {{ join "," .Values.logOutputPaths | quote }}}
- {name: LOG_ERROR_OUTPUT_PATHS, value: {{ join "," .Values.logErrorOutputPaths | quote }}}
- {name: METRICS_PORT, value: {{ .Values.controller.metrics.port | quote }}}
- {name: HEALTH_PROBE_PORT, value: {{ .Values.controller.healthProbe.port | quote }}}
- {name: FEATURE_GATES, value: {{ include "kerf.featureGates" . | quote }}}
- {name: AWS_FEATURE_GATES, value: "NodeClassCEL={{ .Values.settings.awsFeatureGates.nodeClassCEL }}"}
{{- range $variable, $key := fromYaml (include "kerf.variables" .) }}
- {name: {{ $variable }}, value: {{ include "kerf.setting" (list $ $key) | quote }}}
{{- end }}
- {name: LAUNCH_KEY_SECRET, value: {{ include "kerf.launchKeySecret" . | quote }}}
{{- if include "kerf.makesCertificate" . }}
- {name: WEBHOOK_CONFIGURATION, value: {{ include "kerf.fullname" . | quote }}}
- {name: WEBHOOK_SERVICE, value: {{ include "kerf.suffixed" (list . "webhook") | quote }}}
- {name: WEBHOOK_CERT_SECRET, value: {{ include "kerf.webhookCertSecret" . | quote }}}
{{- end }}
{{- end -}}

{{/* The Secret of the key behind launch marks. The controller makes it. */}}
{{- define "kerf.launchKeySecret" -}}
{{ include "kerf.fullname" . }}-launch-key
{{- end -}}

{{/* The text of a setting, empty for one that is null; takes the root context and its key. */}}
{{- define "kerf.setting" -}}
{{- $ := index . 0 }}
{{- $value := index $.Values.settings (index . 1) }}
{{- if not (kindIs "invalid" $value) }}{{ tpl (toString $value) $ }}{{ end -}}
{{- end -}}

{{- define "kerf.featureGates" -}}
{{- with .Values.settings.featureGates -}}
NodeRepair={{ .nodeRepair }},ReservedCapacity={{ .reservedCapacity }},SpotToSpotConsolidation={{ .spotToSpotConsolidation }},NodeOverlay={{ .nodeOverlay }},StaticCapacity={{ .staticCapacity }},CapacityBuffer={{ .capacityBuffer }}
{{- end -}}
{{- end -}}

{{/* The names of the leases under which Karpenter may run, as a list. */}}
{{- define "kerf.karpenterLeaseNames" -}}
{{- $names := list "karpenter-leader-election" }}
{{- range splitList "," (include "kerf.setting" (list . "karpenterLeases")) }}
{{- if contains "/" . }}
{{- $names = append $names (last (splitList "/" (trim .))) }}
{{- end }}
{{- end }}
{{- uniq $names | toJson }}
{{- end }}
