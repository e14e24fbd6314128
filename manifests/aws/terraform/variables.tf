variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
}

variable "namespace" {
  description = "Namespace of the controller's ServiceAccount."
  type        = string
  default     = "kube-system"
}

variable "service_account" {
  description = "Name of the controller's ServiceAccount."
  type        = string
  default     = "karpenter"
}

variable "pod_identity" {
  description = "Whether a role is made for the controller and given to its ServiceAccount by EKS Pod Identity; if not, attach the policies of the outputs to a role of your own."
  type        = bool
  default     = true
}

variable "access_entry" {
  description = "Whether nodes are let in by an EKS access entry; if not (authentication mode CONFIG_MAP), add the node role to the ConfigMap kube-system/aws-auth."
  type        = bool
  default     = true
}

variable "ip_family" {
  description = "Address family of the cluster, ipv4 or ipv6; with ipv6 the VPC CNI on the nodes may assign IPv6 addresses."
  type        = string
  default     = "ipv4"

  validation {
    condition     = contains(["ipv4", "ipv6"], var.ip_family)
    error_message = "ip_family must be ipv4 or ipv6."
  }
}

variable "existing_node_role" {
  description = "Name of a node role to take over, such as KarpenterNodeRole-demo; empty means that a role is created. The role keeps its policies, its instance profiles and its access entry."
  type        = string
  default     = ""
}

variable "existing_controller_role" {
  description = "Name of a controller role to take over; empty means that a role is created. The policies are attached to the role; its trust policy must name the ServiceAccount, or EKS Pod Identity."
  type        = string
  default     = ""
}

variable "existing_queue" {
  description = "Name of an interruption queue to take over, such as Karpenter's; empty means that a queue is created. The queue keeps its policy and its rules of EventBridge."
  type        = string
  default     = ""
}

variable "record_bucket" {
  description = "Bucket for copies of the record of decisions (settings.recordS3); empty means that the controller gets no permissions for it. The bucket is not created."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$", var.record_bucket))
    error_message = "record_bucket must be the name of a bucket, without s3:// and without a prefix."
  }
}

variable "record_prefix" {
  description = "Prefix of this cluster in that bucket, as in settings.recordS3, without slashes at its ends; empty means kerf/<cluster_name>. The prefix kerf alone would cover other clusters."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([A-Za-z0-9_-][A-Za-z0-9._=-]*(/[A-Za-z0-9_-][A-Za-z0-9._=-]*)*)?$", var.record_prefix))
    error_message = "record_prefix must be a prefix such as kerf/my-cluster."
  }
}

variable "record_key_arn" {
  description = "ARN of the KMS key that settings.recordEncryption names; empty means none. The policy of the key must allow IAM policies of its account."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+)?$", var.record_key_arn))
    error_message = "record_key_arn must be the ARN of a key (not of an alias): policies of IAM do not resolve aliases."
  }
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}
