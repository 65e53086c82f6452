"""The foundation: conversion of arrays, compiled loops, lookup of names, atomic files."""
