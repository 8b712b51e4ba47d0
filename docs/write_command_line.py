"""Write the parts of command_line.md that the program itself knows: commands, options, examples.

They stand between ``<!-- written: ... -->`` and ``<!-- end -->``; the rest is prose by hand. ``make
fix`` runs this, and a test fails where the page is not up to date.
"""

import re
from pathlib import Path

import typer

from labelfree import _cli

PAGE = Path(__file__).parent / "command_line.md"
PART = re.compile(r"(<!-- written: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
OWN = ""  # the panel of options that only one command has


def commands():
    """Return the commands by name, in the order of --help."""
    group = typer.main.get_command(_cli.app)
    return {name: group.commands[name] for name in group.list_commands(None)}


def panel(parameter):
    """Return the heading under which --help shows an option."""
    return getattr(parameter, "rich_help_panel", None) or OWN


def cell(words):
    """Write words so that they fit into a cell of a table."""
    return " ".join(words.split()).replace("|", "\\|")


def table_of_commands():
    """List every command with the first sentence of its help."""
    rows = (
        f"| [`labelfree {name}`](#command-{name}) | {cell(command.help.splitlines()[0])} |"
        for name, command in commands().items()
    )
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def row(parameter):
    """Write one option or argument: how it is spelled, what it means, its default."""
    if parameter.param_type_name == "argument":
        spelled = f"`{named(parameter)}`"
    else:
        value = "" if parameter.is_flag else f" {parameter.metavar}"
        *short, long = sorted(parameter.opts, key=len)
        spelled = ", ".join([*(f"`{each}`" for each in short), f"`{long}{value}`"])
    meaning = cell(parameter.help)
    if parameter.required:
        meaning += " Required."
    elif parameter.default not in (None, False):
        default = parameter.default
        shown = f"{default:g}" if isinstance(default, float) else default
        meaning += f" Default: `{shown}`."
    return f"| {cell(spelled)} | {meaning} |"


def named(argument):
    """Write an argument; dots say that there may be several."""
    return f"{argument.metavar}{'...' if argument.nargs != 1 else ''}"


def table_of_options(parameters):
    """Write a table of options."""
    return "\n".join(["| option | meaning |", "|---|---|", *map(row, parameters)])


def table_of_panel(name):
    """Write the options that several commands share under one heading."""
    parameters = {
        parameter.name: parameter
        for command in commands().values()
        for parameter in command.params
        if panel(parameter) == name
    }
    return table_of_options(parameters.values())


def section(name):
    """Write a command's usage, its own options, and the example of its help."""
    command = commands()[name]
    parameters = [each for each in command.params if each.name != "help"]
    own = [each for each in parameters if panel(each) == OWN]
    shared = dict.fromkeys(panel(each) for each in parameters if panel(each) != OWN)
    arguments = [named(each) for each in own if each.param_type_name == "argument"]
    needed = [
        f"{max(each.opts, key=len)} {each.metavar}"
        for each in own
        if each.param_type_name == "option" and each.required
    ]
    options = ["[OPTIONS]"] if len(parameters) > len(arguments) + len(needed) else []
    usage = " ".join(["labelfree", name, *arguments, *needed, *options])
    parts = [f"```text\n{usage}\n```", " ".join(command.help.split())]
    if own:
        parts.append(table_of_options(own))
    if shared:
        links = " and ".join(f"[{each.lower()}](#{anchor(each)})" for each in shared)
        parts.append(f"It takes the options for {links}, too.")
    example = re.sub(r"^  ", "", command.epilog.partition("\n\n")[2], flags=re.MULTILINE)
    parts.append(f"```sh\n{example}\n```")
    return "\n\n".join(parts)


def anchor(heading):
    """Name the place of a heading, as MyST does."""
    return "options-for-" + heading.lower().replace(" ", "-")


def written(page):
    """Return the page with every written part made anew."""

    def made(found):
        kind, _, name = found[2].partition(" ")
        makers = {"commands": lambda _: table_of_commands(), "options": table_of_panel}
        return f"{found[1]}\n{makers.get(kind, section)(name)}\n\n{found[3]}"

    return PART.sub(made, page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
