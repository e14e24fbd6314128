{{- define "kerf.webhookCertSecret" -}}
{{ include "kerf.fullname" . }}-webhook-cert
{{- end -}}

{{/* Not empty when the webhook is a Deployment of this release. */}}
{{- define "kerf.servesWebhook" -}}
{{- if and (include "kerf.on" .Values.webhook.admission) (not .Values.webhook.url) }}yes{{ end -}}
{{- end -}}

{{/* Not empty when cert-manager makes the webhook's certificate. */}}
{{- define "kerf.certManager" -}}
{{- with .Values.webhook }}
{{- if and (include "kerf.on" .admission) (include "kerf.on" .certManager.enabled) }}
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
{{- if and (include "kerf.servesWebhook" .) (not .Values.webhook.caBundle) (not (include "kerf.certManager" .)) }}yes{{ end -}}
{{- end -}}

{{/* How the API server reaches the webhook: the list of the root context and the path of the door. */}}
{{- define "kerf.webhookClient" -}}
{{- $ := index . 0 }}
{{- $path := index . 1 }}
{{- with $.Values.webhook.caBundle }}
caBundle: {{ . }}
{{- end }}
{{- if $.Values.webhook.url }}
url: {{ trimSuffix "/" $.Values.webhook.url }}{{ $path }}
{{- else }}
service:
  name: {{ include "kerf.suffixed" (list $ "webhook") }}
  namespace: {{ $.Release.Namespace }}
  path: {{ $path }}
{{- end }}
{{- end }}

{{/* Accounts whose changes of Kerf's own annotations the webhook never sees, as a list in CEL: the controller's is one. */}}
{{- define "kerf.trustedAccounts" -}}
{{- $own := printf "system:serviceaccount:%s:%s" .Release.Namespace (include "kerf.serviceAccountName" .) }}
{{- prepend (default list .Values.webhook.trustedAccounts) $own | uniq | toJson }}
{{- end }}

{{/*
Whether one of these objects (a list in CEL) is of Kerf, in CEL: NodePools and NodeClaims of other controllers, such as
those of EKS Auto Mode, are not, and their requests do not depend on Kerf's webhook.
*/}}
{{- define "kerf.ownNodeClass" -}}
!(request.resource.resource in ['nodepools', 'nodeclaims']) || {{ . }}.exists(one, one != null &&
[(request.resource.resource == 'nodepools' ? one.?spec.?template.?spec.?nodeClassRef : one.?spec.?nodeClassRef).orValue({})]
.all(ref, ref.?group.orValue('') in ['', 'karpenter.k8s.aws'] && ref.?kind.orValue('') in ['', 'EC2NodeClass']))
{{- end -}}
