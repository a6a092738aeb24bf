# ruff: noqa: E501 - a document is easier to read with a schema on one line
"""Small documents for three services of AWS, in the registry's form: each of another protocol."""

from __future__ import annotations

from pathlib import Path

PROVIDER = """
id: aws
name: aws
version: v00.00.00000
title: AWS
config:
  auth:
    type: aws_signing_v4
    keyIDenvvar: AWS_ACCESS_KEY_ID
    credentialsenvvar: AWS_SECRET_ACCESS_KEY
  snake_case_aliases: true
providerServices:
  sqs:
    {id: 'sqs:v1', name: sqs, title: SQS, service: {$ref: aws/v00.00.00000/services/sqs.yaml}}
  s3:
    {id: 's3:v1', name: s3, title: S3, service: {$ref: aws/v00.00.00000/services/s3.yaml}}
  iam:
    {id: 'iam:v1', name: iam, title: IAM, service: {$ref: aws/v00.00.00000/services/iam.yaml}}
"""

SQS = """
openapi: 3.0.0
info: {title: SQS, version: '1', x-serviceName: sqs}
servers: [{url: 'https://sqs.{region}.amazonaws.com', variables: {region: {default: us-east-1}}}]
x-stackQL-config: {requestBodyTranslate: {algorithm: naive}}
paths:
  /#X-Amz-Target=AmazonSQS.CreateQueue:
    post:
      parameters: [{name: X-Amz-Target, in: header, schema: {type: string, default: AmazonSQS.CreateQueue}}]
      requestBody: {content: {application/x-amz-json-1.0: {schema: {type: object, required: [QueueName], properties: {QueueName: {type: string}, tags: {type: object}}}}}}
      responses: {'200': {description: ok, content: {application/json: {schema: {type: object, properties: {QueueUrl: {type: string}}}}}}}
  /#X-Amz-Target=AmazonSQS.DeleteQueue:
    post:
      parameters: [{name: X-Amz-Target, in: header, schema: {type: string, default: AmazonSQS.DeleteQueue}}]
      requestBody: {content: {application/x-amz-json-1.0: {schema: {type: object, required: [QueueUrl], properties: {QueueUrl: {type: string}}}}}}
      responses: {'200': {description: ok}}
  /#X-Amz-Target=AmazonSQS.ListQueues:
    post:
      parameters: [{name: X-Amz-Target, in: header, schema: {type: string, default: AmazonSQS.ListQueues}}]
      requestBody: {content: {application/x-amz-json-1.0: {schema: {type: object, properties: {QueueNamePrefix: {type: string}}}}}}
      responses: {'200': {description: ok, content: {application/json: {schema: {type: object, properties: {QueueUrls: {type: array, items: {type: string}}}}}}}}
components:
  x-stackQL-resources:
    queues:
      id: aws.sqs.queues
      name: queues
      methods:
        create_queue:
          operation: {$ref: '#/paths/~1#X-Amz-Target=AmazonSQS.CreateQueue/post'}
          request: {mediaType: application/x-amz-json-1.0, nativeCasing: pascal}
          response: {mediaType: application/json, openAPIDocKey: '200'}
        delete_queue:
          operation: {$ref: '#/paths/~1#X-Amz-Target=AmazonSQS.DeleteQueue/post'}
          request: {mediaType: application/x-amz-json-1.0, nativeCasing: pascal}
          response: {openAPIDocKey: '200'}
        list_queues:
          operation: {$ref: '#/paths/~1#X-Amz-Target=AmazonSQS.ListQueues/post'}
          request: {mediaType: application/x-amz-json-1.0, nativeCasing: pascal, base: '{}'}
          response:
            mediaType: application/json
            openAPIDocKey: '200'
            objectKey: $.items
            schema_override: {type: object, properties: {items: {type: array, items: {type: object, properties: {queue_url: {type: string}}}}}}
            transform:
              type: golang_template_json_v0.1.0
              body: '{"items": [{{ $s := separator ", " }}{{ range .QueueUrls }}{{ call $s }}{"queue_url": {{ toJson . }}}{{ end }}]}'
      sqlVerbs:
        select: [{$ref: '#/components/x-stackQL-resources/queues/methods/list_queues'}]
        insert: [{$ref: '#/components/x-stackQL-resources/queues/methods/create_queue'}]
        delete: [{$ref: '#/components/x-stackQL-resources/queues/methods/delete_queue'}]
"""

S3 = """
openapi: 3.0.0
info: {title: S3, version: '1', x-serviceName: s3}
servers: [{url: 'https://s3.{region}.amazonaws.com', variables: {region: {default: us-east-1}}}]
paths:
  /:
    get:
      responses:
        '200':
          description: ok
          content:
            text/xml:
              schema:
                type: object
                properties:
                  Buckets: {type: array, items: {type: object, properties: {Name: {type: string}, CreationDate: {type: string}}}}
  /{Bucket}:
    parameters: [{name: Bucket, in: path, required: true, schema: {type: string}}]
    put: {responses: {'200': {description: ok}}}
    delete: {responses: {'204': {description: ok}}}
components:
  x-stackQL-resources:
    buckets:
      id: aws.s3.buckets
      name: buckets
      methods:
        create_bucket:
          operation: {$ref: '#/paths/~1{Bucket}/put'}
          request: {nativeCasing: pascal}
          response: {openAPIDocKey: '200'}
        delete_bucket:
          operation: {$ref: '#/paths/~1{Bucket}/delete'}
          request: {nativeCasing: pascal}
          response: {openAPIDocKey: '204'}
        list_buckets:
          operation: {$ref: '#/paths/~1/get'}
          request: {nativeCasing: pascal}
          response:
            mediaType: text/xml
            openAPIDocKey: '200'
            objectKey: $.Buckets
            transform: {type: schema_driven_xml_v0.1.0}
      sqlVerbs:
        select: [{$ref: '#/components/x-stackQL-resources/buckets/methods/list_buckets'}]
        insert: [{$ref: '#/components/x-stackQL-resources/buckets/methods/create_bucket'}]
        delete: [{$ref: '#/components/x-stackQL-resources/buckets/methods/delete_bucket'}]
"""

_IAM_METHOD = """
  /?Action={action}&Version=2010-05-08:
    get:
      parameters: [{parameter}]
      responses:
        '200': {{description: ok, content: {{text/xml: {{schema: {{$ref: '#/components/schemas/{schema}'}}}}}}}}
"""
IAM = (
    """
openapi: 3.0.0
info: {title: IAM, version: '1', x-serviceName: iam}
servers: [{url: 'https://iam.amazonaws.com', variables: {region: {default: us-east-1}}}]
x-stackQL-config: {requestTranslate: {algorithm: get_query_to_post_form_utf_8}}
paths:"""
    + _IAM_METHOD.format(action="ListUsers", parameter="", schema="Users")
    + _IAM_METHOD.format(
        action="ListRoles",
        parameter="{name: Marker, in: query, schema: {type: string}}, {name: MaxItems, in: query}",
        schema="Roles",
    )
    + "".join(
        _IAM_METHOD.format(
            action=action,
            parameter="{name: UserName, in: query, required: true, schema: {type: string}}",
            schema="One",
        )
        for action in ("CreateUser", "DeleteUser")
    )
    + """
components:
  schemas:
    User: {type: object, properties: {UserName: {type: string}, Arn: {type: string}, Path: {type: string}}}
    Users: {type: object, properties: {Users: {type: array, items: {$ref: '#/components/schemas/User'}}}}
    Roles: {type: object, properties: {Roles: {type: array, items: {type: object, properties: {RoleName: {}, Arn: {}, Path: {}, RoleId: {}, CreateDate: {}}}}}}
    One: {type: object, properties: {User: {$ref: '#/components/schemas/User'}}}
  x-stackQL-resources:
    users:
      id: aws.iam.users
      name: users
      methods:
"""
    + "".join(
        f"""
        {name}:
          operation: {{$ref: '#/paths/~1?Action={action}&Version=2010-05-08/get'}}
          request: {{nativeCasing: pascal}}
          response:
            mediaType: text/xml
            openAPIDocKey: '200'
            objectKey: {key}
            transform: {{type: schema_driven_xml_v0.1.0}}
"""
        for name, action, key in (
            ("list_users", "ListUsers", "$.Users"),
            ("create_user", "CreateUser", "$.User"),
            ("delete_user", "DeleteUser", "$.User"),
        )
    )
    + """
      sqlVerbs:
        select: [{$ref: '#/components/x-stackQL-resources/users/methods/list_users'}]
        insert: [{$ref: '#/components/x-stackQL-resources/users/methods/create_user'}]
        delete: [{$ref: '#/components/x-stackQL-resources/users/methods/delete_user'}]
    roles:
      id: aws.iam.roles
      name: roles
      methods:
        list_roles:
          operation: {$ref: '#/paths/~1?Action=ListRoles&Version=2010-05-08/get'}
          request: {nativeCasing: pascal}
          response:
            mediaType: text/xml
            openAPIDocKey: '200'
            objectKey: $.Roles
            transform: {type: schema_driven_xml_v0.1.0}
      sqlVerbs:
        select: [{$ref: '#/components/x-stackQL-resources/roles/methods/list_roles'}]
"""
)


def write_aws(folder: Path) -> Path:
    """The registry's folder, with the provider `aws`."""
    place = folder / "src" / "aws" / "v00.00.00000"
    (place / "services").mkdir(parents=True)
    (place / "provider.yaml").write_text(PROVIDER)
    for name, text in (("sqs", SQS), ("s3", S3), ("iam", IAM)):
        (place / "services" / f"{name}.yaml").write_text(text)
    return folder
