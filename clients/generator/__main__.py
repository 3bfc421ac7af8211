"""Write the generated modules of the clients: `make clients`."""

from clients.generator import python, typescript
from clients.generator.document import build_document


def main() -> None:
    """Write the modules of both clients."""
    document = build_document()
    for folder, modules in (
        (python.GENERATED, python.generate_python(document)),
        (typescript.GENERATED, typescript.generate_typescript(document)),
    ):
        folder.mkdir(exist_ok=True)
        for name, text in modules.items():
            (folder / name).write_text(text)


if __name__ == "__main__":
    main()
