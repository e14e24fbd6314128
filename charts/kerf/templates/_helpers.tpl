{{- define "kerf.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name when it holds the chart's, else both: what every object is called. */}}
{{- define "kerf.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if or (contains (include "kerf.name" .) .Release.Name) (eq .Release.Name "karpenter") -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "kerf.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "kerf.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kerf.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "kerf.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kerf.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kerf.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kerf.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kerf.metadata" -}}
labels:
  {{- include "kerf.labels" . | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "kerf.image" -}}
{{- with .Values.controller.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "kerf.featureGates" -}}
{{- with .Values.settings.featureGates -}}
NodeRepair={{ .nodeRepair }},ReservedCapacity={{ .reservedCapacity }},SpotToSpotConsolidation={{ .spotToSpotConsolidation }},NodeOverlay={{ .nodeOverlay }},StaticCapacity={{ .staticCapacity }},CapacityBuffer={{ .capacityBuffer }}
{{- end -}}
{{- end -}}

{{- define "kerf.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "kerf.webhookCertSecret" -}}
{{ include "kerf.fullname" . }}-webhook-cert
{{- end -}}

{{/* Not empty when cert-manager makes the webhook's certificate. */}}
{{- define "kerf.certManager" -}}
{{- with .Values.webhook }}
{{- if and .enabled .certManager.enabled }}
{{- if or .caBundle .url }}
{{- fail "webhook.certManager.enabled: cert-manager makes the certificate and its CA; leave webhook.caBundle and webhook.url empty" }}
{{- end }}yes
{{- end }}
{{- end }}
{{- end -}}

{{/*
Not empty when the controller makes the webhook's certificate; one who brings a CA, an address or cert-manager has one.
*/}}
{{- define "kerf.makesCertificate" -}}
{{- if and .Values.webhook.enabled (not .Values.webhook.caBundle) (not .Values.webhook.url) (not (include "kerf.certManager" .)) }}yes{{ end -}}
{{- end -}}

{{/* The names of the leases under which Karpenter may run, as a list. */}}
{{- define "kerf.karpenterLeaseNames" -}}
{{- $names := list "karpenter-leader-election" }}
{{- range splitList "," .Values.settings.karpenterLeases }}
{{- if contains "/" . }}
{{- $names = append $names (last (splitList "/" (trim .))) }}
{{- end }}
{{- end }}
{{- uniq $names | toJson }}
{{- end }}
