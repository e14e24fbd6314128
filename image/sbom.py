"""The bill of materials of the image for one platform, as CycloneDX 1.6 in JSON.

The same sources give the same bill, to the byte: it has no time, and its serial number comes from what is in it. The
base image is in it by its name; what Debian's packages in there are, nobody knows who does not have it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from image.holdings import Distribution, environment, needs
from image.licences import Row, Rules, rows
from image.player import Configuration
from image.recipe import Recipe

PRODUCT: Final = "kerf"
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://kerf.sh/sbom")


def bill(
    platform: str,
    recipe: Recipe,
    configuration: Configuration,
    distributions: Iterable[Distribution],
    known: Rules,
) -> str:
    """The bill for a platform such as `linux/arm64`, from what was installed for it."""
    everything = tuple(distributions)
    version = next(each.version for each in everything if each.name == PRODUCT)
    image = Component(
        name=PRODUCT,
        version=version,
        type=ComponentType.CONTAINER,
        bom_ref=f"{PRODUCT}-image",
        licenses=[LicenseExpression("Apache-2.0")],
        properties=[
            Property(name="kerf:platform", value=platform),
            Property(name="kerf:commit", value=configuration.environment.get("KERF_COMMIT", "") or "unknown"),
        ],
    )
    base, python = _base(recipe), _python(recipe)
    components = {each.name: _component(each, rows([each], known)) for each in everything}
    bom = Bom(components=[base, python, *components.values()], metadata=BomMetaData(component=image))
    bom.register_dependency(image, [base, components[PRODUCT]])
    bom.register_dependency(base, [python])
    bom.register_dependency(components[PRODUCT], [python])
    for name, requirements in needs(everything, PRODUCT, environment(platform, recipe)).items():
        bom.register_dependency(components[name], [components[canonicalize_name(each.name)] for each in requirements])
    return _written(bom)


def _written(bom: Bom) -> str:
    # No time of its own: who publishes a bill signs it, and the signature has one.
    bom.metadata.timestamp = None  # type: ignore[assignment]  # the schema takes it, the library's type does not
    bom.serial_number = _NAMESPACE
    bom.serial_number = uuid.uuid5(_NAMESPACE, JsonV1Dot6(bom).output_as_string())
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _component(distribution: Distribution, found: tuple[Row, ...]) -> Component:
    own, *carried = found
    return Component(
        name=distribution.name,
        version=distribution.version,
        bom_ref=f"pypi-{distribution.name}",
        type=ComponentType.APPLICATION if distribution.name == PRODUCT else ComponentType.LIBRARY,
        purl=PackageURL("pypi", name=distribution.name, version=distribution.version),
        licenses=_licences(own.licence),
        components=[
            Component(name=row.name, bom_ref=f"pypi-{distribution.name}-{row.name}", licenses=_licences(row.licence))
            for row in carried
        ],
    )


def _licences(licence: str) -> list[LicenseExpression | DisjunctiveLicense]:
    return [LicenseExpression(licence)] if licence else []


def _base(recipe: Recipe) -> Component:
    name, _, tag = recipe.base_image.partition(":")
    digest = recipe.arguments["BASE_DIGEST"].removeprefix("@")
    return Component(
        name=name,
        version=tag,
        type=ComponentType.CONTAINER,
        bom_ref="base-image",
        description="The base image; its Debian packages are not listed here.",
        purl=PackageURL("docker", name=name, version=digest or tag),
    )


def _python(recipe: Recipe) -> Component:
    return Component(
        name="python",
        version=recipe.python,
        type=ComponentType.PLATFORM,
        bom_ref="python",
        cpe=f"cpe:2.3:a:python:python:{recipe.python}:*:*:*:*:*:*:*",
        purl=PackageURL("generic", name="python", version=recipe.python),
        licenses=[LicenseExpression("PSF-2.0")],
    )
