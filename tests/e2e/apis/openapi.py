"""An OpenAPI document as a test reads it: what each answer must look like, and what was seen of it."""

import copy
import re

import jsonschema
import yaml

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
FORMATS = jsonschema.FormatChecker(formats=[])


@FORMATS.checks("date-time")
def is_utc_time(value):
    return bool(TIME.fullmatch(value))


def closed(schema):
    """The same schema with objects that hold what is described and nothing else."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        out["additionalProperties"] = False
    return out


class Document:
    def __init__(self, path):
        self.text = open(path, encoding="utf-8").read()
        self.root = yaml.safe_load(self.text)
        self.components = closed(self.root["components"])
        self.seen = set()        # (path, method, status)
        self.properties = set()  # (schema, property)

    def resolve(self, node):
        while isinstance(node, dict) and "$ref" in node:
            at = {"components": self.components}
            for part in node["$ref"].removeprefix("#/").split("/"):
                at = at[part]
            node = at
        return node

    def operations(self):
        """(path, method, status) of everything that is promised."""
        return {(path, method, int(status)) for path, methods in self.root["paths"].items()
                for method, operation in methods.items() for status in operation["responses"]}

    def request_schema(self, path, method):
        content = self.root["paths"][path][method]["requestBody"]["content"]
        return self.whole(closed(content["application/json"]["schema"]))

    def whole(self, schema):
        return {**copy.deepcopy(schema), "components": self.components}

    def problems(self, path, method, answer):
        """What is wrong with an answer to a request that the document knows."""
        responses = self.root["paths"][path][method]["responses"]
        where = f"{method.upper()} {path} {answer.status}"
        if str(answer.status) not in responses:
            return [f"{where} is not documented: {answer.body[:200]!r}"]
        self.seen.add((path, method, answer.status))
        response = self.resolve(responses[str(answer.status)])
        wrong = []
        for name, header in response.get("headers", {}).items():
            value = answer.headers[name]
            wanted = header["schema"]
            if value is None or "const" in wanted and value != wanted["const"]:
                wrong.append(f"{where}: {name} is {value!r}")
        content = response.get("content", {})
        if answer.type not in content:
            return wrong + [f"{where}: {answer.type} is not one of {list(content)}"]
        schema = closed(content[answer.type]["schema"])
        value = answer.json() if answer.type.endswith("json") else answer.body.decode()
        validator = jsonschema.Draft202012Validator(self.whole(schema), format_checker=FORMATS)
        wrong += [f"{where}: {'/'.join(map(str, error.path))}: {error.message}"
                  for error in validator.iter_errors(value)]
        self.note(schema, value, f"{path} {method}")
        return wrong

    def note(self, schema, value, name):
        """Remembers which described properties were there."""
        if isinstance(schema, dict) and "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
        schema = self.resolve(schema)
        if isinstance(value, dict):
            for key, inner in schema.get("properties", {}).items():
                if key in value:
                    self.properties.add((name, key))
                    self.note(inner, value[key], f"{name}.{key}")
        if isinstance(value, list):
            for item in value:
                self.note(schema.get("items", {}), item, name)

    def described(self):
        """Every property of every schema that an answer is made of."""
        out, known = set(), set()

        def walk(schema, name):
            if "$ref" in schema:
                name = schema["$ref"].rsplit("/", 1)[1]
                if name in known:
                    return
                known.add(name)
            schema = self.resolve(schema)
            for key, inner in schema.get("properties", {}).items():
                out.add((name, key))
                walk(inner, f"{name}.{key}")
            if "items" in schema:
                walk(schema["items"], name)

        for path, methods in self.root["paths"].items():
            for method, operation in methods.items():
                for response in operation["responses"].values():
                    for content in self.resolve(response).get("content", {}).values():
                        walk(closed(content["schema"]), f"{path} {method}")
        return out
