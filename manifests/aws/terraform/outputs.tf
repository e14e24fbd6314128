output "queue_name" {
  description = "For settings.interruptionQueue."
  value       = local.queue_name
}

output "node_role_name" {
  description = "For spec.role of EC2NodeClasses."
  value       = local.node_role_name
}

output "policy_arns" {
  description = "For a role of your own."
  value       = [for policy in aws_iam_policy.controller : policy.arn]
}
