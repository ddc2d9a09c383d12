"""The command line: ``python -m lazynp [--report] [--device NAME] PROGRAM [arguments...]``, where the program is what Python takes: a
script, a directory, a zip, ``-m module``, ``-c code``, ``-``, or nothing for a prompt; or ``python -m lazynp --coverage``, or
``python -m lazynp doctor``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from lazynp.array import core
from lazynp.values import config

if core.native:
    from lazynp import script
    from lazynp.array import regimes
    from lazynp.engine import devices
    from lazynp.graph import report, usage


class _Options:
    """Options of the command line, as they are where nothing is said."""

    script: str | None = None  # a script, a directory, a zip, "-" or "doctor"
    module: Sequence[str] | None = None  # with its arguments
    code: Sequence[str] | None = None
    arguments: Sequence[str] = ()
    report = False
    report_json: str | None = None
    backend: str | None = None
    device: str | None = None
    coverage: str | None = None


def _options() -> _Options:
    options = _Options()
    first, *rest = sys.argv[1:] or ("",)
    if first == "-" or (first and not first.startswith("-")):
        options.script, options.arguments = first, rest
    elif first == "-m" and rest:
        options.module = rest
    elif first == "-c" and rest:
        options.code = rest
    else:
        _parse(options)
    return options


def _parse(options: _Options) -> None:
    """Parse a line with options of ours; the others start without what this takes to import."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m lazynp",
        description="Run a NumPy program with `numpy` meaning lazynp in it and in the modules beside it; without one, a prompt.",
    )
    parser.add_argument("--report", action="store_true", help="at the end, print what was fused, forced and fell back (to stderr)")
    parser.add_argument("--report-json", metavar="FILE", help="at the end, write the counters to FILE")
    parser.add_argument("--backend", choices=config.BACKENDS, help="what runs the programs (LAZYNP_BACKEND)")
    parser.add_argument("--device", metavar="NAME", help="where arrays live: cpu, cuda, cuda:N (LAZYNP_DEVICE)")
    parser.add_argument(
        "--coverage", nargs="?", const="", metavar="PAGE", help="print who answers each name of NumPy, or write the page that lists them"
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module or package, with the arguments that follow")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, help="run this text, with the arguments that follow")
    what = "the script, directory or zip to run; -: standard input; doctor: look at what is installed, and whether it works"
    parser.add_argument("script", nargs="?", help=what)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")
    parser.parse_args(namespace=options)
    for flag, given in (("-m", options.module), ("-c", options.code)):
        if given == []:
            parser.error(f"argument {flag}: expected one argument")


def _run(options: _Options, source: bytes | None) -> None:
    """Run the program that is named, in the way that its form asks for."""
    if options.code is not None:
        script.run_text(options.code[0], "-c", options.code[1:])
    elif options.module is not None:
        script.run_module(options.module[0], options.module[1:])
    elif source is not None and options.script is not None:
        script.run(options.script, options.arguments, source)
    elif options.script is None and sys.stdin.isatty():
        from lazynp import prompt

        prompt.interact()
    elif options.script in (None, "-"):
        script.run_text(sys.stdin.buffer.read(), options.script or "", options.arguments)
    else:
        script.run_collection(options.script, options.arguments)


def _run_at_call(options: _Options) -> None:
    """Let Python run the program that is named."""
    from lazynp import at_call

    if options.code is not None:
        program = ["-c", *options.code]
    elif options.module is not None:
        program = ["-m", *options.module]
    else:
        program = [] if options.script is None else [options.script, *options.arguments]
    at_call.run(program, options.report, options.report_json)


def _cover(page: str) -> None:
    from lazynp import coverage

    if page:
        with open(page, "w", encoding="utf-8") as file:
            file.write(coverage().page())
    else:
        sys.stdout.write(f"{coverage()}\n")


def _use(device: str) -> None:
    """Make a device the default one, if it is there."""
    try:
        name = devices.checked(device)
    except ValueError as error:
        sys.stderr.write(f"python -m lazynp: {error}\n")
        raise SystemExit(2) from None
    config.update(device=name)
    os.environ["LAZYNP_DEVICE"] = device


def main() -> None:
    options = _options()
    if options.coverage is not None:
        _cover(options.coverage)
        return
    if options.script == "doctor" and not os.path.exists("doctor"):
        from lazynp.doctor import main as look

        raise SystemExit(look())
    if not core.native:
        _run_at_call(options)
    source = None
    if options.module is options.code is None and options.script not in (None, "-") and not script.is_collection(options.script):
        try:
            source = script.read(options.script)
        except OSError as error:
            sys.stderr.write(f"python -m lazynp: can't open file {options.script!r}: {error.strerror}\n")
            raise SystemExit(2) from None
    if options.backend is not None:
        config.update(backend=options.backend)
        os.environ["LAZYNP_BACKEND"] = options.backend  # for processes that the script starts
    if options.device is not None:
        _use(options.device)
    if options.report or options.report_json is not None:
        usage.watch()
        regimes.watch()
    try:
        _run(options, source)
    except script.MissingProgramError as error:
        sys.stderr.write(f"python -m lazynp: {error}\n")
        raise SystemExit(1) from None
    finally:
        if options.report:
            sys.stdout.flush()
            sys.stderr.write(report.report() + "\n")
        if options.report_json is not None:
            import json

            with open(options.report_json, "w", encoding="utf-8") as file:
                json.dump(report.counters(), file, indent=1)


if __name__ == "__main__":
    main()
