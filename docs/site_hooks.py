"""Steps of the build of the site: its version, and pages whose sources are files at the root of the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

#: Files at the root of the repository and their pages.
ROOT_PAGES: Final = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def root_of(config: MkDocsConfig) -> Path:
    """The folder of mkdocs.yml."""
    return Path(config.config_file_path or "").parent


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Append the version of pyproject.toml to the name of the site, so that every page and every title shows it.

    Without the address of a repository no page has a link to its source.
    """
    project = tomllib.loads((root_of(config) / "pyproject.toml").read_text(encoding="utf-8"))
    config.site_name = f"{config.site_name} {project['project']['version']}"
    if not config.repo_url:
        config.edit_uri = None
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of ROOT_PAGES."""
    for name, page in ROOT_PAGES.items():
        text = (root_of(config) / name).read_text(encoding="utf-8")
        file = File.generated(config, page, content=as_page(text))
        file.edit_uri = f"../{name}"
        files.append(file)
    return files


def as_page(text: str) -> str:
    """The text with links from the root of the repository made relative to docs/."""
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\]\((?:\w+\.md)\)", lambda link: link[0].lower(), text)
