"""The source paper's experiments, reproduced and extended: `python -m paper`, or `make paper`.

JNK is Jaffe, Nadler and Kluger (AISTATS 2015). One job a module, in the order in which they run:

    settings     how much is run, full and quick, and where it goes
    work         jobs on all cores, in a fixed order; tables in and out
    spectral     JNK's two algorithms and their finish, on one tally
    artificial   JNK section 6.1 and its appendix: both estimators of b against n and m
    consistency  Theorem 1 and Theorem 2, and the exact limit
    data         the data sets: a folder, or OpenML
    ensembles    ten classifiers: ready votes, Weka, scikit-learn
    real         JNK section 6.2 and its appendix: consensus and rates on real data
    beyond       errors over the Cramér–Rao bound; missing votes; copying classifiers
    style        how every chart looks, and how it becomes a file
    figures      tables -> charts
    page         tables -> docs/paper.md

Every experiment writes its own table, so that each may be run again by itself.
"""
