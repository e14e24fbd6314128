{{/* What the pods of all Deployments have in common. */}}

{{- define "kerf.image" -}}
{{- with .Values.controller.image -}}
{{- $repository := tpl (toString .repository) $ -}}
{{- if hasSuffix "karpenter/controller" $repository }}
{{- fail "controller.image.repository: this is Karpenter's program; leave controller.image out, or name a copy of Kerf's" }}
{{- end -}}
{{- if .digest }}{{ $repository }}@{{ .digest }}{{ else }}{{ $repository }}:{{ default $.Chart.AppVersion .tag }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "kerf.containerSecurity" -}}
securityContext:
  privileged: false
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  capabilities:
    drop: [ALL]
  {{- range $field := list "appArmorProfile" "seLinuxOptions" "seccompProfile" }}
  {{- with index (default dict $.Values.controller.securityContext) $field }}
  {{ $field }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end -}}

{{/* How the pods of the release get to a node. */}}
{{- define "kerf.podBasics" -}}
{{- range $field := list "imagePullSecrets" "nodeSelector" "tolerations" }}
{{- with index $.Values $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $field := list "priorityClassName" "schedulerName" }}
{{- with index $.Values $field }}
{{ $field }}: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The same, and where the pods of a Deployment go; takes what `kerf.selectorLabels` takes. */}}
{{- define "kerf.scheduling" -}}
{{- $ := index . 0 }}
{{- $own := default dict (index (dict "webhook" $.Values.webhook "ui" $.Values.ui) (index . 1)) }}
{{- $selector := dict "matchLabels" (fromYaml (include "kerf.selectorLabels" .)) -}}
{{- /* The page is not critical to the cluster. */}}
{{- $values := ternary (set (deepCopy $.Values) "priorityClassName" $.Values.ui.priorityClassName) $.Values (eq (index . 1) "ui") }}
{{- include "kerf.podBasics" (dict "Values" $values) | trim }}
{{- with default $.Values.affinity $own.affinity }}
affinity:
  {{- include "kerf.affinity" (dict "affinity" . "selector" $selector) | nindent 2 }}
{{- end }}
{{- with default $.Values.topologySpreadConstraints $own.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{- merge (deepCopy .) (ternary dict (dict "labelSelector" $selector) (hasKey . "labelSelector")) | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* An affinity whose terms, where they say nothing of which pods, mean those of the Deployment itself. */}}
{{- define "kerf.affinity" -}}
{{- $affinity := deepCopy .affinity }}
{{- $selector := .selector }}
{{- range $kind := list "podAffinity" "podAntiAffinity" }}
{{- $rules := default dict (index $affinity $kind) }}
{{- $terms := default list $rules.requiredDuringSchedulingIgnoredDuringExecution }}
{{- range default list $rules.preferredDuringSchedulingIgnoredDuringExecution }}
{{- $terms = append $terms (default dict .podAffinityTerm) }}
{{- end }}
{{- range $terms }}
{{- if not (hasKey . "labelSelector") }}
{{- $_ := set . "labelSelector" $selector }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end -}}

{{/* What is mounted for the controller; nothing of ours where something of the user's is to be. */}}
{{- define "kerf.volumeMounts" -}}
{{- $mounts := default list .Values.controller.extraVolumeMounts }}
{{- $taken := false }}
{{- range $mounts }}
{{- $taken = or $taken (eq (trimSuffix "/" .mountPath) "/tmp") }}
{{- end }}
{{- if not $taken }}
{{- $mounts = prepend $mounts (dict "name" "kerf-tmp" "mountPath" "/tmp") }}
{{- end }}
{{- toYaml $mounts }}
{{- end -}}

{{/* Containers beside the controller; what is mounted for them, and for it, is mounted in each. */}}
{{- define "kerf.sidecars" -}}
{{- $more := concat (default list .Values.controller.extraVolumeMounts) (default list .Values.controller.sidecarVolumeMounts) }}
{{- range .Values.controller.sidecarContainer }}
{{- $mounts := concat (default list .volumeMounts) $more }}
- {{- merge (ternary (dict "volumeMounts" $mounts) dict (gt (len $mounts) 0)) . | toYaml | nindent 2 }}
{{- end }}
{{- end -}}
