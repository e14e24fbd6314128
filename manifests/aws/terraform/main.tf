data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  # A cluster name has up to 100 characters. IAM allows 64 for a role, EventBridge 64 for a rule: the longest prefix of a
  # role is KarpenterNodeRole-, the longest prefix and suffix of a rule are kerf- and -reservation-interruption.
  hash      = substr(sha256(var.cluster_name), 0, 8)
  name      = length(var.cluster_name) <= 46 ? var.cluster_name : "${substr(var.cluster_name, 0, 37)}-${local.hash}"
  rule_name = length(var.cluster_name) <= 34 ? var.cluster_name : "${substr(var.cluster_name, 0, 25)}-${local.hash}"

  # A role or a queue that is taken over is not created.
  with_node_role       = var.existing_node_role == ""
  with_controller_role = var.pod_identity && var.existing_controller_role == ""
  with_policies        = var.pod_identity || var.existing_controller_role != ""
  with_queue           = var.existing_queue == ""

  node_role_name       = one(concat(aws_iam_role.node[*].name, data.aws_iam_role.node[*].name))
  node_role_arn        = one(concat(aws_iam_role.node[*].arn, data.aws_iam_role.node[*].arn))
  controller_role_name = one(concat(aws_iam_role.controller[*].name, data.aws_iam_role.controller[*].name))
  controller_role_arn  = one(concat(aws_iam_role.controller[*].arn, data.aws_iam_role.controller[*].arn))
  queue_name           = one(concat(aws_sqs_queue.interruptions[*].name, data.aws_sqs_queue.interruptions[*].name))
  queue_arn            = one(concat(aws_sqs_queue.interruptions[*].arn, data.aws_sqs_queue.interruptions[*].arn))

  # The documents are those of ../policies, which CloudFormation has, too.
  policies = {
    "node-lifecycle"    = "Launch, tag and end instances and launch templates of this cluster"
    "instance-profiles" = "Make and end instance profiles of this cluster"
    "interruption"      = "Read the interruption queue of this cluster"
    "discovery"         = "Read what can be launched, where and at which price"
    "record"            = "Keep copies of the record of decisions in a bucket"
    "record-key"        = "Encrypt and decrypt the record of decisions"
  }

  left_out = concat(
    var.record_bucket == "" ? ["record"] : [],
    var.record_bucket == "" || var.record_key_arn == "" ? ["record-key"] : [],
  )

  names = {
    partition      = data.aws_partition.this.partition
    region         = data.aws_region.this.name
    account_id     = data.aws_caller_identity.this.account_id
    cluster_name   = var.cluster_name
    node_role_arn  = local.node_role_arn
    queue_arn      = local.queue_arn
    record_bucket  = var.record_bucket
    record_prefix  = var.record_prefix != "" ? var.record_prefix : "kerf/${var.cluster_name}"
    record_key_arn = var.record_key_arn
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
data "aws_iam_role" "node" {
  count = local.with_node_role ? 0 : 1
  name  = var.existing_node_role
}

resource "aws_iam_role" "node" {
  count = local.with_node_role ? 1 : 0
  name  = "KarpenterNodeRole-${local.name}"
  tags  = var.tags

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
  for_each   = toset(local.with_node_role ? local.node_policies : [])
  role       = aws_iam_role.node[0].name
  policy_arn = "arn:${data.aws_partition.this.partition}:iam::aws:policy/${each.value}"
}

# Source: EKS user guide, "Configure the VPC CNI to use IRSA", policy for IPv6.
resource "aws_iam_role_policy" "node" {
  count = var.ip_family == "ipv6" && local.with_node_role ? 1 : 0
  name  = "AssignIPv6Addresses"
  role  = aws_iam_role.node[0].name

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect = "Allow"
        Action = [
          "ec2:AssignIpv6Addresses",
          "ec2:DescribeInstanceTypes",
          "ec2:DescribeInstances",
          "ec2:DescribeNetworkInterfaces",
          "ec2:DescribeTags",
        ]
        Resource = ["*"]
      },
      {
        Effect   = "Allow"
        Action   = ["ec2:CreateTags"]
        Resource = ["arn:${data.aws_partition.this.partition}:ec2:*:*:network-interface/*"]
      },
    ]
  })
}

resource "aws_eks_access_entry" "node" {
  count         = var.access_entry && local.with_node_role ? 1 : 0
  cluster_name  = var.cluster_name
  principal_arn = local.node_role_arn
  type          = "EC2_LINUX"
  tags          = var.tags
}

# --- interruptions --------------------------------------------------------------------------------------------------
data "aws_sqs_queue" "interruptions" {
  count = local.with_queue ? 0 : 1
  name  = var.existing_queue
}

resource "aws_sqs_queue" "interruptions" {
  count                     = local.with_queue ? 1 : 0
  name                      = local.name
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}

resource "aws_sqs_queue_policy" "interruptions" {
  count     = local.with_queue ? 1 : 0
  queue_url = aws_sqs_queue.interruptions[0].url

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "LetEventsIn"
        Effect    = "Allow"
        Principal = { Service = ["events.amazonaws.com", "sqs.amazonaws.com"] }
        Action    = ["sqs:SendMessage"]
        Resource  = [local.queue_arn]
      },
      {
        Sid       = "OnlyEncrypted"
        Effect    = "Deny"
        Principal = "*"
        Action    = ["sqs:*"]
        Resource  = [local.queue_arn]
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

resource "aws_cloudwatch_event_rule" "interruptions" {
  for_each = { for key, event in local.events : key => event if local.with_queue }
  name     = "kerf-${local.rule_name}-${replace(each.key, "_", "-")}"
  tags     = var.tags

  event_pattern = jsonencode({
    source        = [each.value.source]
    "detail-type" = [each.value.detail_type]
  })
}

resource "aws_cloudwatch_event_target" "interruptions" {
  for_each = aws_cloudwatch_event_rule.interruptions
  rule     = each.value.name
  arn      = local.queue_arn
}

# --- the controller -------------------------------------------------------------------------------------------------
resource "aws_iam_policy" "controller" {
  for_each    = { for key, text in local.policies : key => text if !contains(local.left_out, key) }
  name        = "Kerf-${each.key}-${local.name}"
  description = each.value
  policy      = templatefile("${path.module}/../policies/${each.key}.json", local.names)
  tags        = var.tags
}

data "aws_iam_role" "controller" {
  count = var.existing_controller_role == "" ? 0 : 1
  name  = var.existing_controller_role
}

resource "aws_iam_role" "controller" {
  count = local.with_controller_role ? 1 : 0
  name  = "KerfController-${local.name}"
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
  for_each   = { for key, policy in aws_iam_policy.controller : key => policy if local.with_policies }
  role       = local.controller_role_name
  policy_arn = each.value.arn
}

resource "aws_eks_pod_identity_association" "controller" {
  count           = var.pod_identity ? 1 : 0
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = local.controller_role_arn
  tags            = var.tags
}
