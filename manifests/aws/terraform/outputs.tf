output "queue_name" {
  description = "For settings.interruptionQueue."
  value       = aws_sqs_queue.interruptions.name
}

output "node_role_name" {
  description = "For spec.role of EC2NodeClasses."
  value       = aws_iam_role.node.name
}

output "policy_arns" {
  description = "For a role of your own."
  value       = [for policy in aws_iam_policy.controller : policy.arn]
}
