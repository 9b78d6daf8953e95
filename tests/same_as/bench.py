def run(programs, rounds, only, as_json, tell):
    return 0
