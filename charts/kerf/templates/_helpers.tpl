{{/*
What Karpenter's chart calls its objects by: a release that has its name, or is configured so, is taken over in place, and what
cannot be changed in an object (selectors, references to roles) has to be what Karpenter's chart wrote.
*/}}
{{- define "kerf.name" -}}
{{- default (ternary "karpenter" .Chart.Name (contains "karpenter" .Release.Name)) .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name when it holds that name, else both: what every object is called. */}}
{{- define "kerf.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "kerf.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "kerf.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/*
The same with a suffix; takes the root context and `webhook`, `ui` or `test`. A Service's name has 63 characters at most: of a longer
one the front is cut off at the end, never the suffix.
*/}}
{{- define "kerf.suffixed" -}}
{{- $suffix := index . 1 }}
{{- $most := sub 62 (len $suffix) | int }}
{{- printf "%s-%s" (include "kerf.fullname" (index . 0) | trunc $most | trimSuffix "-") $suffix -}}
{{- end -}}

{{- define "kerf.serviceAccountName" -}}
{{- if include "kerf.on" .Values.serviceAccount.create -}}
{{- default (include "kerf.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/*
By which a Deployment knows its pods; takes the root context and `controller` or `webhook` (or `test`). Karpenter's Deployment knows
its pods by name and instance alone, and that cannot be changed: there the webhook's pods bear another name.
*/}}
{{- define "kerf.selectorLabels" -}}
{{- $ := index . 0 }}
{{- $component := index . 1 }}
{{- $name := include "kerf.name" $ }}
{{- if eq $name "karpenter" -}}
app.kubernetes.io/name: {{ ternary $name (printf "%s-%s" $name $component) (eq $component "controller") }}
app.kubernetes.io/instance: {{ $.Release.Name }}
{{- else -}}
app.kubernetes.io/name: {{ $name }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ $component }}
{{- end -}}
{{- end -}}

{{/* On the pods of a Deployment; takes what `kerf.selectorLabels` takes. */}}
{{- define "kerf.podLabels" -}}
{{- include "kerf.selectorLabels" . }}
{{- if eq (include "kerf.name" (index . 0)) "karpenter" }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}
{{- end -}}

{{- define "kerf.labels" -}}
app.kubernetes.io/name: {{ include "kerf.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{ include "kerf.releaseLabels" . }}
{{- end -}}

{{- define "kerf.releaseLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels and annotations of an object that belongs to the whole release; what the chart sets wins. */}}
{{- define "kerf.metadata" -}}
labels:
  {{- merge (fromYaml (include "kerf.labels" .)) (default dict .Values.additionalLabels) | toYaml | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The same of an object of one Deployment; takes what `kerf.selectorLabels` takes. */}}
{{- define "kerf.componentMetadata" -}}
{{- $ := index . 0 }}
{{- $labels := merge (fromYaml (include "kerf.podLabels" .)) (fromYaml (include "kerf.releaseLabels" $)) -}}
labels:
  {{- merge $labels (default dict $.Values.additionalLabels) | toYaml | nindent 2 }}
{{- with $.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Not empty for a switch that is on, be it written as true or as "true". */}}
{{- define "kerf.on" -}}
{{- if eq (toString .) "true" }}yes{{ end -}}
{{- end -}}

{{/* Fails when a process would bind one port twice; takes the root context and `webhook` or `ui`. */}}
{{- define "kerf.checkPorts" -}}
{{- $name := index . 1 }}
{{- $own := index (index . 0).Values $name }}
{{- if eq (toString $own.port) (toString $own.healthPort) }}
{{- fail (printf "%s.healthPort: is the same as %s.port, %v: set another port" $name $name $own.port) }}
{{- end }}
{{- end -}}
