"""The fields of a kubelet configuration and their types: kubelet.config.k8s.io/v1beta1 as of Kubernetes 1.36.

A type is a word, a mapping of fields (`*`: any key), or a list with the type of its items. Source: API reference §5.8.
"""

from __future__ import annotations

from typing import Any

_FIELDS = {
    "string": """kind apiVersion staticPodPath podLogsDir staticPodURL address tlsCertFile tlsPrivateKeyFile
        tlsMinVersion imagePullCredentialsVerificationPolicy healthzBindAddress clusterDomain kubeletCgroups
        systemCgroups cgroupRoot cgroupDriver cpuManagerPolicy memoryManagerPolicy topologyManagerPolicy
        topologyManagerScope hairpinMode podCIDR resolvConf contentType containerLogMaxSize
        configMapAndSecretChangeDetectionStrategy reservedSystemCPUs showHiddenMetricsForVersion
        systemReservedCgroup kubeReservedCgroup volumePluginDir providerID memoryReservationPolicy
        containerRuntimeEndpoint imageServiceEndpoint""",
    "bool": """enableServer rotateCertificates serverTLSBootstrap enableDebuggingHandlers
        enableContentionProfiling cgroupsPerQOS singleProcessOOMKill runOnce cpuCFSQuota serializeImagePulls
        mergeDefaultEvictionSettings enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains
        failSwapOn kernelMemcgNotification enableSystemLogHandler enableSystemLogQuery enableProfilingHandler
        enableDebugFlagsHandler seccompDefault registerNode localStorageCapacityIsolation failCgroupV1""",
    "int32": """port readOnlyPort registryPullQPS registryBurst eventRecordQPS eventBurst healthzPort
        oomScoreAdj nodeLeaseDurationSeconds imageGCHighThresholdPercent imageGCLowThresholdPercent maxPods
        nodeStatusMaxImages kubeAPIQPS kubeAPIBurst maxParallelImagePulls evictionMaxPodGracePeriod podsPerCore
        iptablesMasqueradeBit iptablesDropBit containerLogMaxFiles containerLogMaxWorkers""",
    "int64": "podPidsLimit maxOpenFiles",
    "number": "memoryThrottlingFactor",
    "duration": """syncFrequency fileCheckFrequency httpCheckFrequency streamingConnectionIdleTimeout
        nodeStatusUpdateFrequency nodeStatusReportFrequency imageMinimumGCAge imageMaximumGCAge
        volumeStatsAggPeriod cpuManagerReconcilePeriod runtimeRequestTimeout cpuCFSQuotaPeriod
        evictionPressureTransitionPeriod containerLogMonitorInterval shutdownGracePeriod
        shutdownGracePeriodCriticalPods""",
}
_TEXT_LISTS = (
    "tlsCipherSuites preloadedImagesVerificationAllowlist clusterDNS enforceNodeAllocatable allowedUnsafeSysctls"
)
_TEXT_MAPS = """cpuManagerPolicyOptions topologyManagerPolicyOptions qosReserved evictionHard evictionSoft
    evictionSoftGracePeriod evictionMinimumReclaim systemReserved kubeReserved"""
_LOG_TEXT = {"splitStream": "bool", "infoBufferSize": "string"}

SCHEMA: dict[str, Any] = {
    **{name: kind for kind, names in _FIELDS.items() for name in names.split()},
    **{name: ["string"] for name in _TEXT_LISTS.split()},
    **{name: {"*": "string"} for name in _TEXT_MAPS.split()},
    "tlsCurvePreferences": ["int32"],
    "staticPodURLHeader": {"*": ["string"]},
    "featureGates": {"*": "bool"},
    "authentication": {
        "x509": {"clientCAFile": "string"},
        "webhook": {"enabled": "bool", "cacheTTL": "duration"},
        "anonymous": {"enabled": "bool"},
    },
    "authorization": {
        "mode": "string",
        "webhook": {"cacheAuthorizedTTL": "duration", "cacheUnauthorizedTTL": "duration"},
    },
    "memorySwap": {"swapBehavior": "string"},
    "logging": {
        "format": "string",
        "flushFrequency": "duration or nanoseconds",
        "verbosity": "int64",
        "vmodule": [{"filePattern": "string", "verbosity": "int64"}],
        "options": {"text": _LOG_TEXT, "json": _LOG_TEXT},
    },
    "shutdownGracePeriodByPodPriority": [{"priority": "int32", "shutdownGracePeriodSeconds": "int64"}],
    "crashLoopBackOff": {"maxContainerRestartPeriod": "duration"},
    "reservedMemory": [{"numaNode": "int32", "limits": {"*": "string"}}],
    "registerWithTaints": [{"key": "string", "value": "string", "effect": "string", "timeAdded": "string"}],
    "tracing": {"endpoint": "string", "samplingRatePerMillion": "int32"},
    "userNamespaces": {"idsPerPod": "int64"},
}
