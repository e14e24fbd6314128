data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  # The documents are those of ../policies, which CloudFormation has, too.
  policies = {
    "node-lifecycle"    = "Launch, tag and end instances and launch templates of this cluster"
    "instance-profiles" = "Make and end instance profiles of this cluster"
    "interruption"      = "Read the interruption queue of this cluster"
    "discovery"         = "Read what can be launched, where and at which price"
  }

  names = {
    partition     = data.aws_partition.this.partition
    region        = data.aws_region.this.name
    account_id    = data.aws_caller_identity.this.account_id
    cluster_name  = var.cluster_name
    node_role_arn = aws_iam_role.node.arn
    queue_arn     = aws_sqs_queue.interruptions.arn
  }

  node_policies = [
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
  ]

  events = {
    spot_interruption        = { source = "aws.ec2", detail_type = "EC2 Spot Instance Interruption Warning" }
    rebalance_recommendation = { source = "aws.ec2", detail_type = "EC2 Instance Rebalance Recommendation" }
    state_change             = { source = "aws.ec2", detail_type = "EC2 Instance State-change Notification" }
    reservation_interruption = { source = "aws.ec2", detail_type = "EC2 Capacity Reservation Instance Interruption Warning" }
    scheduled_change         = { source = "aws.health", detail_type = "AWS Health Event" }
  }
}

# --- nodes ----------------------------------------------------------------------------------------------------------
resource "aws_iam_role" "node" {
  name = "KarpenterNodeRole-${var.cluster_name}"
  tags = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole"]
      Principal = { Service = ["ec2.${data.aws_partition.this.dns_suffix}"] }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each   = toset(local.node_policies)
  role       = aws_iam_role.node.name
  policy_arn = "arn:${data.aws_partition.this.partition}:iam::aws:policy/${each.value}"
}

resource "aws_eks_access_entry" "node" {
  count         = var.access_entry ? 1 : 0
  cluster_name  = var.cluster_name
  principal_arn = aws_iam_role.node.arn
  type          = "EC2_LINUX"
  tags          = var.tags
}

# --- interruptions --------------------------------------------------------------------------------------------------
resource "aws_sqs_queue" "interruptions" {
  name                      = var.cluster_name
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}

resource "aws_sqs_queue_policy" "interruptions" {
  queue_url = aws_sqs_queue.interruptions.url

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "LetEventsIn"
        Effect    = "Allow"
        Principal = { Service = ["events.amazonaws.com", "sqs.amazonaws.com"] }
        Action    = ["sqs:SendMessage"]
        Resource  = [aws_sqs_queue.interruptions.arn]
      },
      {
        Sid       = "OnlyEncrypted"
        Effect    = "Deny"
        Principal = "*"
        Action    = ["sqs:*"]
        Resource  = [aws_sqs_queue.interruptions.arn]
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

resource "aws_cloudwatch_event_rule" "interruptions" {
  for_each = local.events
  name     = "kerf-${var.cluster_name}-${replace(each.key, "_", "-")}"
  tags     = var.tags

  event_pattern = jsonencode({
    source        = [each.value.source]
    "detail-type" = [each.value.detail_type]
  })
}

resource "aws_cloudwatch_event_target" "interruptions" {
  for_each = aws_cloudwatch_event_rule.interruptions
  rule     = each.value.name
  arn      = aws_sqs_queue.interruptions.arn
}

# --- the controller -------------------------------------------------------------------------------------------------
resource "aws_iam_policy" "controller" {
  for_each    = local.policies
  name        = "Kerf-${each.key}-${var.cluster_name}"
  description = each.value
  policy      = templatefile("${path.module}/../policies/${each.key}.json", local.names)
  tags        = var.tags
}

resource "aws_iam_role" "controller" {
  count = var.pod_identity ? 1 : 0
  name  = "KerfController-${var.cluster_name}"
  tags  = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = ["pods.eks.amazonaws.com"] }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "controller" {
  for_each   = var.pod_identity ? aws_iam_policy.controller : {}
  role       = aws_iam_role.controller[0].name
  policy_arn = each.value.arn
}

resource "aws_eks_pod_identity_association" "controller" {
  count           = var.pod_identity ? 1 : 0
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller[0].arn
  tags            = var.tags
}
