"""A small registry of provider documents, written for the tests."""

from __future__ import annotations

from pathlib import Path

PROVIDER = """
id: shop
name: shop
version: v00.00.00000
title: A shop
config:
  auth: {type: bearer, credentialsenvvar: SHOP_TOKEN}
  snake_case_aliases: true
  pagination:
    requestToken: {key: page_token, location: query}
    responseToken: {key: $.next, location: body}
providerServices:
  stock:
    id: 'stock:v1'
    name: stock
    preferred: true
    service: {$ref: shop/v00.00.00000/services/stock.yaml}
    title: Stock
    description: !<tag:yaml.org,2002:js/undefined> ''
  later:
    name: later
    service: {$ref: shop/v00.00.00000/services/later.yaml}
"""

STOCK = r"""
openapi: 3.1.0
info: {title: Stock, version: '1'}
servers:
- url: https://{region}.shop.example/v1
  variables: {region: {default: eu}, edition: {default: basic}}
x-stackQL-config:
  requestTranslate: {algorithm: drop_double_underscore_params}
  queryParamPushdown: {top: {paramName: limit, maxValue: 200}}
paths:
  /items/{item-id}:
    parameters:
    - {name: item-id, in: path, required: true, schema: {type: string}}
    - {name: verbose, in: query, schema: {type: boolean}}
    get:
      summary: One item
      parameters:
      - {name: verbose, in: query, required: true, schema: {type: boolean}}
      - {$ref: '#/components/parameters/Trace'}
      responses:
        200:
          description: ok
          content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}
    put:
      requestBody: {$ref: '#/components/requestBodies/Item'}
      responses: {204: {description: done}}
  /items?kind=stock&__all:
    get:
      responses:
        200: {$ref: '#/components/responses/Items'}
    post:
      servers: [{url: 'https://{host}/v2'}]
      requestBody:
        required: true
        content:
          text/plain: {schema: {type: string}}
          application/json: {schema: {$ref: '#/components/schemas/Item'}}
      responses:
        201: {description: made}
  /shops/{shop_name}/close:
    post:
      parameters: [{name: shop-name, in: path, required: true, schema: {type: string}}]
      responses: {default: {description: done}}
  /undeclared/{thing}:
    delete: {responses: {204: {description: gone}}}
components:
  parameters:
    Trace: {name: X-Trace, in: header, required: true, schema: {type: string}}
  requestBodies:
    Item: {content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}
  responses:
    Items:
      description: all
      content:
        application/json:
          schema:
            type: object
            properties:
              next: {type: string}
              data:
                properties:
                  items: {type: array, items: {$ref: '#/components/schemas/Item'}}
  schemas:
    Base: {type: object, required: [itemName], properties: {itemName: {type: string}}}
    Item:
      allOf:
      - {$ref: '#/components/schemas/Base'}
      - properties:
          sizeMM: {type: [integer, 'null']}
          parent: {$ref: '#/components/schemas/Item'}
          tags: {type: array, items: {type: string}}
      oneOf:
      - {properties: {colour: {type: string}}}
      - {properties: {weight: {type: number}}}
  x-stackQL-resources:
    items:
      id: shop.stock.items
      name: items
      title: Items
      methods:
        get:
          operation: {$ref: '#/paths/~1items~1{item-id}/get'}
          response: {mediaType: application/json, openAPIDocKey: '200'}
        list:
          operation: {$ref: '#/paths/~1items?kind=stock&__all/get'}
          response: {mediaType: application/json, openAPIDocKey: '200', objectKey: $.data.items}
        create:
          operation: {$ref: '#/paths/~1items?kind=stock&__all/post'}
          config:
            requestBodyTranslate: {algorithm: naive}
            pagination:
              requestToken: {key: '', location: request}
              responseToken: {key: Link, location: header}
          request:
            mediaType: application/json
            nativeCasing: camel
            base: '{"kind": "x"}'
            required: [tags]
          response: {openAPIDocKey: '201'}
        replace:
          operation: {$ref: '#/paths/~1items~1{item-id}/put'}
          response: {openAPIDocKey: '204'}
      sqlVerbs:
        select:
        - {$ref: '#/components/x-stackQL-resources/items/methods/get'}
        - {$ref: '#/components/x-stackQL-resources/items/methods/list'}
        insert: [{$ref: '#/components/x-stackQL-resources/items/methods/create'}]
        replace: [{$ref: '#/components/x-stackQL-resources/items/methods/replace'}]
        update: []
        delete: []
      config:
        views:
          select:
            predicate: sqlDialect == "sqlite3" && requiredParams == [ Identifier, Region ]
            ddl: SELECT json_extract(p, '$.a.30d') AS a FROM shop.stock.items
            fallback:
              predicate: sqlDialect == "postgres" && requiredParams == [ Identifier ]
              ddl: SELECT 1
    shops:
      name: shops
      methods:
        close:
          operation: {$ref: '#/paths/~1shops~1{shop_name}~1close/post'}
          response: {openAPIDocKey: default}
        list:
          operation: {$ref: '#/paths/~1items?kind=stock&__all/get'}
          response:
            openAPIDocKey: '200'
            overrideMediaType: application/json
            transform: {type: golang_template_json_v0.3.0, body: '{"a": {{ toJson . }} }'}
            schema_override: {$ref: '#/components/schemas/Base'}
        undeclared:
          operation: {$ref: '#/paths/~1undeclared~1{thing}/delete'}
          response: {openAPIDocKey: '200'}
"""


def write_registry(folder: Path, stock: str = STOCK, provider: str = PROVIDER) -> Path:
    """Write the registry to `folder` and return it."""
    services = folder / "src" / "shop" / "v00.00.00000" / "services"
    services.mkdir(parents=True)
    (services.parent / "provider.yaml").write_text(provider)
    (services / "stock.yaml").write_text(stock)
    return folder
