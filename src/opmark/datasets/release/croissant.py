"""The description of a release in Croissant 1.0 JSON-LD, for dataset search engines and mlcroissant."""

from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.reading import read_json
from opmark.datasets.format.columns import TABLES, Column, TableFormat
from opmark.datasets.format.manifest import FileEntry, ReleaseManifest

FILE = "croissant.json"
_LICENCE_URLS = {
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "MIT": "https://opensource.org/license/mit",
    "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "BSD-3-Clause": "https://opensource.org/license/bsd-3-clause",
}
_PARQUET = "application/x-parquet"
_TYPES = {"string": "sc:Text", "double": "sc:Float", "int64": "sc:Integer", "list<double>": "sc:Float"}
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(manifest: ReleaseManifest) -> dict[str, Any]:
    """Make the JSON-LD document; file addresses are relative to it, which lies beside the tables."""
    tables = [(table, entry) for table in TABLES.values() if (entry := manifest.entry(table.file)) is not None]
    description = (
        f"Operator and network latencies measured on {manifest.device}, targets "
        f"{', '.join(target.name for target in manifest.targets)}. Release id {manifest.id}."
    )
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": manifest.name,
        "description": description,
        "citeAs": f"The OpMark authors. OpMark, datasets/{manifest.device}/{manifest.version}.",
        "creator": {"@type": "sc:Organization", "name": manifest.provenance.attribution or "The OpMark authors"},
        "license": _LICENCE_URLS.get(manifest.licence, manifest.licence),
        "version": manifest.version,
        **({"datePublished": manifest.published} if manifest.published else {}),
        "distribution": [_file_object(entry) for _, entry in tables],
        "recordSet": [_record_set(table) for table, _ in tables],
    }


def croissant_of(folder: Path, manifest: ReleaseManifest, place: str = "") -> dict[str, Any]:
    """The document that the release in `folder` was published with; it describes the columns of its own format.

    `place` is the address of the tables for a document that lies elsewhere. Raises `ContentError` for another content.
    """
    path = folder / FILE
    document = croissant(manifest) if manifest.entry(FILE) is None else read_json(path)
    try:
        for item in document["distribution"] if place else ():
            item["contentUrl"] = f"{place}/{item['contentUrl']}"
    except (LookupError, TypeError) as error:
        raise ContentError("describes no files as Croissant does", where=str(path)) from error
    found: dict[str, Any] = document
    return found


def _file_object(entry: FileEntry) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.name,
        "name": entry.name,
        "contentUrl": entry.name,
        "contentSize": f"{entry.size_bytes} B",
        "encodingFormat": _PARQUET,
        "sha256": entry.sha256,
    }


def _record_set(table: TableFormat) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": f"One row: {table.title}.",
        "field": [_field(table, column) for column in table.columns],
    }


def _field(table: TableFormat, column: Column) -> dict[str, Any]:
    repeated = {"repeated": True} if column.type.startswith("list") else {}
    return {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": column.meaning,
        "dataType": _TYPES[column.type],
        **repeated,
        "source": {"fileObject": {"@id": table.file}, "extract": {"column": column.name}},
    }
